"""Whether a tensor lies in the host's memory, where the autocast of another device does not act."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.parameters import default_of
from amplint.claims.surroundings import FunctionNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_MAX_STEPS = 40
_MAKERS = frozenset(("rand", "randn", "randint", "zeros", "ones", "empty", "full", "eye", "linspace"))
_SCALAR = (ast.List, ast.Tuple)


def is_on_host(
    around: Surroundings,
    function: ast.AST | None,
    node: ast.expr | None,
    through_calls: bool = False,
    by_default: bool = False,
) -> bool:
    """Whether what an expression is computed from was moved by ``.cpu()`` or is an array's memory, and not moved on.

    Operands of one operation lie on one device, so one of them is enough. ``through_calls``: the
    arguments of a private function that nothing but calls name in the file are looked through too. ``by_default``: a
    parameter of the function counts as the device that it is by default, and what is made on none lies on torch's.
    """
    pending = [(function, node, node.lineno)] if node is not None else []
    for _ in range(_MAX_STEPS):
        if not pending:
            return False
        scope, current, line = pending.pop()
        if isinstance(current, ast.Call):
            device = (_default_device(scope, current) if by_default else None) or _moved_to(around, current)
            if by_default and device is None:
                device = _made_on(around, current)
            if device is not None:
                if device == "cpu":
                    return True
                continue
            if around.called(current) == "from_numpy":
                return True
        if isinstance(current, ast.Name) and scope is not None:
            given = _last_given(scope, current.id, line)
            pending += [(scope, value, value.lineno) for value in given]
            if not given and through_calls:
                passed = _passed(around, scope, current.id)
                if passed and all(is_on_host(around, around.function(value), value) for value in passed):
                    return True
        pending += [(scope, part, line) for part in _sources(around, current)]
    return False


def _passed(around: Surroundings, function: ast.AST, name: str) -> list[ast.expr]:
    """What the file passes for a parameter of a private function of its top level; empty where that is not known."""
    module = around.parent(function)
    if not isinstance(module, ast.Module) or not isinstance(function, ast.FunctionDef):
        return []
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if not function.name.startswith("_") or name not in names:
        return []
    found = []
    for use in ast.walk(module):
        if not isinstance(use, ast.Name) or use.id != function.name:
            continue
        call = around.parent(use)
        if not isinstance(call, ast.Call) or call.func is not use or len(call.args) <= names.index(name):
            return []
        found.append(call.args[names.index(name)])
    return found


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


def _made_on(around: Surroundings, call: ast.Call) -> str | None:
    """``cpu`` of ``torch.rand(4)``, of which more than one number is made; empty of what goes to the device of another.

    Where a device is named the call itself says nothing.
    """
    destination = _destination(call)
    if around.called(call) == "type_as" or (destination is not None and not around.is_dtype(destination)):
        return ""
    if around.torch_name(call.func).removeprefix("torch.") not in _MAKERS or not call.args:
        return None
    scalar = isinstance(call.args[0], _SCALAR) and not call.args[0].elts
    placed = any(keyword.arg in ("device", "out", None) for keyword in call.keywords)
    return None if scalar or placed else "cpu"


def _default_device(function: ast.AST | None, call: ast.Call) -> str | None:
    """``cpu`` of ``.to(device)`` in a function whose parameter is that by default."""
    given = _destination(call)
    if not isinstance(function, FunctionNode) or not isinstance(given, ast.Name):
        return None
    default = default_of(function, given.id)
    return default.value if isinstance(default, ast.Constant) and isinstance(default.value, str) else None


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
