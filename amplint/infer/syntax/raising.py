"""What may raise, and what takes it, as far as syntax tells."""

from __future__ import annotations

import ast
import builtins

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

_RAISING = (
    *(ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Await, ast.Yield),
    *(ast.YieldFrom, ast.Starred, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Delete),
)
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)
_MISSING_API = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"))


@once_for_each_node
def may_raise(node: ast.stmt | ast.expr) -> bool:
    """Whether a statement itself, but for the blocks in it, or an expression may raise."""
    if isinstance(node, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass, ast.Break, ast.Continue)):
        return False
    parts: list[ast.AST] = [node]
    if isinstance(node, _BLOCKS):
        parts = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.match_case))]
        if isinstance(node, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
            return True
    unpacks = isinstance(node, (ast.Assign, ast.AugAssign)) and not isinstance(
        node.targets[0] if isinstance(node, ast.Assign) else None, ast.Name
    )
    return unpacks or any(isinstance(inner, _RAISING) for part in parts for inner in nodes_below(part))


def takes_all(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes whatever is raised."""
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


def for_old_releases(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only serves releases that lack a name or a parameter: not the ones judged here.

    What the body raises by a statement reaches it all the same.
    """
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(kind, ast.Name) and kind.id in _MISSING_API for kind in kinds)


def takes_failures(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may take what torch raises for a dtype: a RuntimeError, a TypeError, a NotImplementedError."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(map(_may_be_failure, kinds))


def _may_be_failure(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Attribute):
        return kind.attr != "LinAlgError"
    named = getattr(builtins, kind.id, None) if isinstance(kind, ast.Name) else None
    if not isinstance(named, type) or not issubclass(named, BaseException):
        return not isinstance(kind, ast.Name) or kind.id != "LinAlgError"
    return any(issubclass(raised, named) for raised in (RuntimeError, TypeError, NotImplementedError))
