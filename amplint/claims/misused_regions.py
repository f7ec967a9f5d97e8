"""Autocast regions that are called with the wrong arguments, or are not entered."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from amplint.infer.flow.training.roles import is_autocast
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Program, Scope
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference

_DTYPES = frozenset(
    f"torch.{name}" for name in ("float16", "half", "bfloat16", "float32", "float", "float64", "double")
)


class Misuse(Enum):
    """What is wrong with a region: its message, ``{}`` being the first argument, and whether it raises."""

    DTYPE_AS_DEVICE = ("passes {} as the device type, which raises: write dtype=", True)
    DTYPE_AS_ENABLED = ("passes {} as `enabled`, so the dtype is the default one: write dtype=", False)
    DEVICE_OBJECT = ("passes a torch.device as the device type, which raises: pass its .type", True)
    NOT_CALLED = ("enters the class of autocast, which raises: call it", True)
    JOINED = ("`and` enters only one of these contexts: separate them by a comma", False)
    DROPPED = ("makes an autocast region and drops it: enter it by a with statement", False)

    @property
    def raises(self) -> bool:
        return self.value[1]

    @property
    def fix(self) -> str:
        """The fix that is meant, empty where the node alone says which."""
        if self is Misuse.DEVICE_OBJECT:
            return "device"
        return "dtype" if self in (Misuse.DTYPE_AS_DEVICE, Misuse.DTYPE_AS_ENABLED) else ""

    def message(self, node: ast.expr) -> str:
        first = ast.unparse(node.args[0]) if isinstance(node, ast.Call) and node.args else ""
        return self.value[0].format(first)


def misused_regions(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.expr, Misuse]]:
    """Every misuse of a region in a file, with the expression that is wrong."""
    program = facts.training.program
    scopes = {id(scope.node): scope for scope in program.scopes}
    for reference in facts.references:
        if not is_autocast(reference.name):
            continue
        call = reference.call
        if call is None:
            parent = around.parent(reference.node)
            if isinstance(parent, ast.withitem) and isinstance(reference.node, ast.expr):
                yield reference.node, Misuse.NOT_CALLED
            continue
        scope = scopes.get(id(around.function(call)), program.module)
        wrong = _wrong_argument(reference, call, program, scope)
        if wrong is not None:
            yield call, wrong
        parent = around.parent(call)
        if isinstance(parent, ast.BoolOp) and isinstance(around.parent(parent), ast.withitem):
            if isinstance(parent.op, ast.And):
                yield parent, Misuse.JOINED
        elif isinstance(parent, ast.Expr) or (isinstance(parent, ast.Assign) and _never_read(parent, scope)):
            yield call, Misuse.DROPPED


def _wrong_argument(reference: Reference, call: ast.Call, program: Program, scope: Scope) -> Misuse | None:
    legacy = ".amp.autocast" in reference.name and reference.name.count(".") == 3
    first = call.args[0] if call.args else None
    if first is not None and program.name(first) in _DTYPES:
        return Misuse.DTYPE_AS_ENABLED if legacy else Misuse.DTYPE_AS_DEVICE
    device = next((keyword.value for keyword in call.keywords if keyword.arg == "device_type"), first)
    if not legacy and device is not None and _is_device_object(device, program, scope):
        return Misuse.DEVICE_OBJECT
    return None


def _is_device_object(node: ast.expr, program: Program, scope: Scope) -> bool:
    """``torch.device("cuda")``, ``next(model.parameters()).device``, and variables that are nothing else.

    A parameter annotated so is not: strings are passed for devices everywhere.
    """
    if isinstance(node, ast.Call):
        return program.name(node.func) == "torch.device"
    if isinstance(node, ast.Attribute):
        return node.attr == "device" and ast.unparse(node.value).endswith(".parameters())")
    if not isinstance(node, ast.Name):
        return False
    if any(argument.arg == node.id for argument in scope.parameters()):
        return False
    values = [v for t, v in scope.assignments if isinstance(t, ast.Name) and t.id == node.id]
    return bool(values) and all(_is_device_object(value, program, scope) for value in values if not _same(value, node))


def _same(value: ast.expr, node: ast.Name) -> bool:
    return isinstance(value, ast.Name) and value.id == node.id


def _never_read(assignment: ast.Assign, scope: Scope) -> bool:
    """Whether a function sets a variable of its own and nowhere reads it."""
    names = [target.id for target in assignment.targets if isinstance(target, ast.Name)]
    if len(names) != len(assignment.targets) or isinstance(scope.node, ast.Module):
        return False
    if any(set(names) & set(node.names) for node in nodes_of_kind(scope.node, ast.Global, ast.Nonlocal)):
        return False
    return not any(node.id in names and isinstance(node.ctx, ast.Load) for node in nodes_of_kind(scope.node, ast.Name))
