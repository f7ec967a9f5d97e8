"""Puts the code of a changed file into the functions and classes that exist already, in this process.

Whatever holds them, as a recipe, a subclass or another module's import does, then runs the changed code.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections import defaultdict
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from mutants.sources import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutants.sources import Function


class CannotSwap(Exception):
    """The changed code does not fit into what exists."""


class Functions:
    """The function objects of some files, by file, name and row. What is made later is not in it."""

    def __init__(self, files: Iterable[str]) -> None:
        self.files = frozenset(files)
        self._found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in self.files:
                code = thing.__code__
                self._found[code.co_filename, code.co_name, code.co_firstlineno].append(thing)

    def swap(self, path: str, before: ast.Module, after: ast.Module) -> int:
        """Give every function of a file the code that it has in ``after``. Returns how many got other code.

        Raises CannotSwap, also where a function does not fit: another set of names from around it.
        """
        count = 0
        for old, new in _paired(_compiled(before, path), _compiled(after, path)):
            for function in self._found.get((path, old.co_name, old.co_firstlineno), ()):
                try:
                    function.__code__ = new
                except ValueError as error:
                    raise CannotSwap(str(error)) from None
                count += old != new
        return count


def _compiled(tree: ast.Module, path: str) -> CodeType:
    try:
        return compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CannotSwap(f"it does not compile: {error}") from None


def _parsed(data: bytes) -> ast.Module:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError) as error:
        raise CannotSwap(f"it does not parse: {error}") from None


parsed_before = lru_cache(maxsize=8)(_parsed)
"""The tree of an unbroken file. Parsed before a fork, it need not be parsed in any child."""


def _changed(before: bytes, after: bytes) -> tuple[ast.Module, ast.Module]:
    """Both trees, without the definitions that are the same at the same rows."""
    trees = parsed_before(before), _parsed(after)
    if len(trees[0].body) != len(trees[1].body):
        return trees
    lines = before.splitlines(), after.splitlines()
    kept: tuple[list[ast.stmt], list[ast.stmt]] = [], []
    for old, new in zip(trees[0].body, trees[1].body, strict=True):
        same = _rows(old) == _rows(new) and lines[0][slice(*_rows(old))] == lines[1][slice(*_rows(new))]
        if not same or isinstance(new, (ast.Import, ast.ImportFrom)):
            kept[0].append(old)
            kept[1].append(new)
    return ast.Module(kept[0], []), ast.Module(kept[1], [])


def _rows(node: ast.stmt) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    return (decorators[0].lineno if decorators else node.lineno) - 1, node.end_lineno or 0


def _paired(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Code objects of both trees that have the same place in them."""
    inner = [_children(old), _children(new)]
    for key, code in inner[0].items():
        other = inner[1].get(key)
        if other is not None:
            yield code, other
            yield from _paired(code, other)


def _children(code: CodeType) -> dict[tuple[str, int], CodeType]:
    counts: dict[str, int] = defaultdict(int)
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_name, counts[constant.co_name]] = constant
            counts[constant.co_name] += 1
    return found


def put(functions: Functions, module: Any, path: str, before: bytes, after: bytes) -> None:
    """Put a changed file's code in the place of the original's: bodies, new imports, changed decorators and defaults.

    Raises CannotSwap, also where nothing takes the change.
    """
    trees = _changed(before, after)
    count = functions.swap(path, *trees)
    imports = [[n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))] for tree in trees]
    known = {ast.dump(node) for node in imports[0]}
    added = [node for node in imports[1] if ast.dump(node) not in known]
    exec(compile(ast.Module([*added], []), path, "exec", dont_inherit=True), vars(module))
    signatures = [_signatures(tree) for tree in trees]
    for name, (text, definition, owner) in signatures[1].items():
        if name in signatures[0] and signatures[0][name][0] != text:
            _rebuild(module, path, trees[1], definition, owner)
            count += 1
    if not count:
        raise CannotSwap("no function took the code")


def _signatures(tree: ast.Module) -> dict[str, tuple[str, Function, tuple[str, ...]]]:
    """Decorators and parameters of a file's functions and methods, as text, with the definition and its classes."""
    found: dict[str, tuple[str, Function, tuple[str, ...]]] = {}

    def walk(body: list[ast.stmt], owner: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, FUNCTIONS):
                text = " ".join(map(ast.dump, [*node.decorator_list, node.args]))
                found.setdefault(".".join((*owner, node.name)), (text, node, owner))
            elif isinstance(node, ast.ClassDef):
                walk(node.body, (*owner, node.name))

    walk(tree.body, ())
    return found


def _rebuild(module: Any, path: str, tree: ast.Module, definition: Function, owner: tuple[str, ...]) -> None:
    """Evaluate a definition again and put it where the old one stands."""
    space: Any = module
    for part in owner:
        space = getattr(space, part, None)
    future = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    code = compile(ast.Module([*future, definition], []), path, "exec", dont_inherit=True)
    names: dict[str, Any] = {}
    try:
        exec(code, vars(module), names)
        made, old = names[definition.name], vars(space)[definition.name]
    except Exception as error:
        raise CannotSwap(f"its definition raised {type(error).__name__}: {error}") from None
    setattr(space, definition.name, made)
    for other in [] if owner else list(sys.modules.values()):
        if vars(other).get(definition.name) is old:
            setattr(other, definition.name, made)
