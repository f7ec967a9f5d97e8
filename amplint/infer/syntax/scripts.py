"""What only a script or a test of the file runs: no import does, so that alone decides its precision."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.references import references

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

_OF_TORCH = ("autocast", "GradScaler", "float16", "bfloat16", "half", "set_default_dtype")
_PRECISION = frozenset(("half", "bfloat16", "autocast", "precision", "mixed_precision", "fp16", "bf16"))
"""Parts of torch, and attributes and keywords, by which code asks for low precision."""
_DTYPES = frozenset(("dtype", "torch_dtype"))
_TEST_RUNNERS = frozenset(("pytest", "unittest"))
_MOCKS = frozenset(("mock",))


def run_in_full_precision(tree: ast.Module) -> tuple[tuple[int, int], ...]:
    """First and last lines of the classes and functions that only a script or test of this file runs, which gives them
    no low precision.

    A script is a block ``if __name__ == "__main__":``; where it mentions a dtype or autocast, it may give them one. A
    test is a file that imports a test runner, and gives one where it names a 16-bit dtype or autocast.
    """
    scripts = [item for item in tree.body if isinstance(item, ast.If) and is_script(item)]
    names = {id(reference.node): reference.name for reference in references(tree)} if scripts else {}
    bodies = [script.body for script in scripts if not any(_asked(script, names, _PRECISION | _DTYPES))]
    bodies += [tree.body] if is_test(tree) and not asks_for_low_precision(tree) else []
    return tuple(
        (defined.lineno, defined.end_lineno or defined.lineno)
        for body in bodies
        for defined in body
        if isinstance(defined, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    )


def is_script(statement: ast.stmt) -> bool:
    """Whether a statement at the top of a file is what runs only where the file is the program."""
    return isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)


@once_for_each_node
def program_rows(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last lines of what runs only where a file is the program."""
    return [(s.lineno, s.end_lineno or s.lineno) for s in tree.body if is_script(s)]


def asks_for_low_precision(tree: ast.Module) -> bool:
    """Whether a file names a 16-bit dtype or autocast, or passes a precision."""
    return next(precision_asked(tree), None) is not None


def precision_asked(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Where a file names a 16-bit dtype or autocast, or passes a precision, in no particular order: each with the
    word."""
    return _asked(tree, {id(reference.node): reference.name for reference in references(tree)}, _PRECISION)


def is_test(tree: ast.Module) -> bool:
    """Whether a file imports a test runner, and more of it than what replaces objects by mocks."""
    return any(_takes_runner(statement) for statement in tree.body)


def _takes_runner(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        taken = {alias.name for alias in statement.names} - _MOCKS
        return not statement.level and statement.module in _TEST_RUNNERS and bool(taken)
    return isinstance(statement, ast.Import) and any(alias.name in _TEST_RUNNERS for alias in statement.names)


def _asked(block: ast.AST, names: dict[int, str], words: AbstractSet[str]) -> Iterator[tuple[str, ast.AST]]:
    """Where a block names a dtype or autocast, or passes a precision."""
    for node in nodes_below(block):
        word = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
        part = next((part for part in names.get(id(node), "").split(".") if part in _OF_TORCH), None)
        if part is not None:
            yield part, node
        elif word in words and word is not None:
            yield word, node
