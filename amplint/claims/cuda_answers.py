"""Variables that hold what ``torch.cuda`` answered: the number of GPUs, their memory, and what was made of that."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts

_COUNTING = frozenset(
    (
        *("len", "sum", "min", "max", "any", "all", "bool", "int", "list", "tuple", "set", "dict"),
        *("sorted", "range", "enumerate"),
    )
)
"""Builtin functions whose answer says of their arguments what the arguments say."""
_FILLING = frozenset(("append", "add", "extend", "insert", "update", "setdefault"))
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
MAX_ROUNDS = 4
"""How many variables and functions an answer is followed through."""


class CudaAnswers:
    """Which variables of each function of a file, and which attributes that the function sets, hold such an answer.

    Followed through assignments, containers, builtin functions and functions of the file, not through other calls: a
    model that was made for a device says nothing of it.
    """

    def __init__(self, facts: FileFacts) -> None:
        tree = facts.source.tree
        self._names = {id(reference.node): reference.name for reference in facts.references}
        functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
        self._outer = {id(node) for node in tree.body}
        self._held: dict[int, set[str]] = {id(function): set() for function in functions}
        self._giving: set[str] = set()
        for _ in range(MAX_ROUNDS):
            for function in functions:
                self._follow(function)

    def decides(self, test: ast.expr, function: ast.AST | None) -> bool:
        """Whether a test in a function reads an answer of ``torch.cuda``, or a variable that holds one."""
        return self._answers(test, self._held.get(id(function), set()))

    def _follow(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        held = self._held[id(function)]
        for node in ast.walk(function):
            for target, value in _given(node):
                if self._answers(value, held):
                    held.add(target)
            if isinstance(node, ast.Return) and node.value is not None and self._answers(node.value, held):
                self._giving.update({function.name} if id(function) in self._outer else ())

    def _answers(self, value: ast.expr, held: set[str]) -> bool:
        pending: list[ast.AST] = [value]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                name = self._names.get(id(node.func), "")
                if (name.startswith("torch.cuda.") and ".amp" not in name) or called in self._giving:
                    return True
                if called not in _COUNTING:
                    continue
            elif isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in held:
                return True
            pending.extend(ast.iter_child_nodes(node))
        return False


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The variables that a node puts a value into, whole or as an item."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        pairs = [(node.target, node.iter)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLING:
        pairs = [(node.func.value, argument) for argument in node.args]
    else:
        return
    for target, value in pairs:
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        for name in names:
            inner = name
            while isinstance(inner, (ast.Subscript, ast.Starred)):
                inner = inner.value
            yield ast.unparse(inner), value
