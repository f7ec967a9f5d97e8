"""Where a variable is read after it was bound: the dtype that the reader sees is the one that it was bound to."""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_Position: TypeAlias = "tuple[int, int]"
_Binder: TypeAlias = "ast.stmt | ast.NamedExpr | None"

_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_OUTSIDE = ("decorator_list", "returns", "bases", "keywords")
"""Fields of a definition that the scope around it evaluates."""
_NO_NAMES = frozenset({"ctx", "op", "ops"})
"""Fields below which there are none."""
_BLOCKS = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)


@dataclass(frozen=True, slots=True)
class _Use:
    """One mention of a name: from where on it counts and, where it binds, up to where every path comes from it."""

    at: _Position
    node: ast.Name | ast.arg
    until: _Position | None = None


def first_reads(tree: ast.Module) -> dict[ast.Name | ast.arg, ast.Name]:
    """For each variable bound, the next place in the source that reads it.

    Left out are variables bound again before they are read, and those read only where paths have met that did not
    all bind them: after the block, in another function, in a later pass of a loop.
    """
    uses: dict[tuple[ast.AST, str], list[_Use]] = {}
    for node, scope, binder, until in _nodes(tree):
        if isinstance(node, ast.arg) and isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            uses.setdefault((scope, node.arg), []).append(_Use(_start(scope.body[0]), node, _end(scope)))
        elif isinstance(node, ast.Name):
            of_name = uses.setdefault((scope, node.id), [])
            if isinstance(node.ctx, ast.Load) or (isinstance(binder, ast.AugAssign) and binder.target is node):
                of_name.append(_Use(_start(node), node))
            else:
                of_name.append(_binding(node, binder, until))
    reads = {}
    for of_name in uses.values():
        of_name.sort(key=lambda use: (use.at, use.until is None))
        for use, following in pairwise(of_name):
            if use.until and not following.until and following.at <= use.until and isinstance(following.node, ast.Name):
                reads[use.node] = following.node
    return reads


def _binding(node: ast.Name, binder: _Binder, until: _Position) -> _Use:
    """A name that is bound: after what binds it, or where the block begins that it is bound for."""
    if isinstance(binder, _BLOCKS):
        return _Use(_start(binder.body[0]), node, _end(binder.body[-1]))
    return _Use(_end(binder or node), node, until)


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, _Binder, _Position]]:
    """Every node with its scope, the statement or ``:=`` that it is a part of, and the end of the block around that."""
    pending: list[tuple[ast.AST, ast.AST, _Binder, _Position]] = [(tree, tree, None, (0, 0))]
    while pending:
        node, scope, binder, until = pending.pop()
        yield node, scope, binder, until
        opens, named = isinstance(node, _SCOPES), node if isinstance(node, ast.NamedExpr) else binder
        for field in node._fields:
            if field in _NO_NAMES:
                continue
            value = getattr(node, field, None)
            inner = node if opens and field not in _OUTSIDE else scope
            if isinstance(value, ast.AST):
                pending.append((value, inner, named, until))
            elif isinstance(value, list):
                children = [child for child in value if isinstance(child, ast.AST)]
                end = _end(children[-1]) if children and isinstance(children[-1], ast.stmt) else until
                for child in children:
                    pending.append((child, inner, child if isinstance(child, ast.stmt) else binder, end))


def _start(node: ast.stmt | ast.expr) -> _Position:
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> _Position:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0
