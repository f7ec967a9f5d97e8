"""Whether a tensor lies in the host's memory, where the autocast of another device does not act."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_MAX_STEPS = 40


def is_on_host(around: Surroundings, function: ast.AST | None, node: ast.expr | None) -> bool:
    """Whether what an expression is computed from was moved by ``.cpu()`` or is an array's memory, and not moved on.

    Operands of one operation lie on one device, so one of them is enough.
    """
    pending = [(node, node.lineno)] if node is not None else []
    for _ in range(_MAX_STEPS):
        if not pending:
            return False
        current, line = pending.pop()
        if isinstance(current, ast.Call):
            device = _moved_to(around, current)
            if device is not None:
                if device == "cpu":
                    return True
                continue
            if around.called(current) == "from_numpy":
                return True
        if isinstance(current, ast.Name) and function is not None:
            pending += [(value, value.lineno) for value in _last_given(function, current.id, line)]
        pending += [(part, line) for part in _sources(around, current)]
    return False


def _moved_to(around: Surroundings, call: ast.Call) -> str | None:
    """The device that ``.cpu()``, ``.cuda()`` or ``.to("cpu")`` moves to; empty where it is another or not known."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("cpu", "cuda"):
        return call.func.attr
    first = _destination(call)
    if first is None:
        return None
    if isinstance(first, ast.Constant):
        return str(first.value)
    return None if around.is_dtype(first) else ""


def _destination(call: ast.Call) -> ast.expr | None:
    """What ``.to`` is passed first, or as the device."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
        return None
    named = (keyword.value for keyword in call.keywords if keyword.arg == "device")
    return call.args[0] if call.args else next(named, None)


def _sources(around: Surroundings, node: ast.expr) -> Iterator[ast.expr]:
    """The tensors that an expression takes its device from."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Subscript | ast.Attribute):
        yield node.value
    elif isinstance(node, ast.Call) and (isinstance(node.func, ast.Attribute) or around.torch_name(node.func)):
        yield from (node.func, *node.args)


def _last_given(function: ast.AST, name: str, line: int) -> list[ast.expr]:
    """What a variable was last assigned above a line."""
    found = [
        statement.value
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        and statement.lineno < line
    ]
    return [max(found, key=lambda value: value.lineno)] if found else []
