"""Models that are made half whatever the device turns out to be, where the file itself falls back to the CPU."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Place, Program, Scope
    from amplint.infer.state.facts import FileFacts

_AVAILABLE = "torch.cuda.is_available"
_HALF = frozenset(("torch.float16", "torch.half"))
_LIBRARIES = ("transformers", "diffusers")
_CHANGES = frozenset(("half", "float", "bfloat16", "double"))


def half_on_cpu(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that make a model float16, and the choice of the device that it is moved to, which may be the CPU.

    They hang on nothing, or on options that are on unless a caller says otherwise, and the function asks for CUDA only
    to choose the device. What is converted with its result dropped is a module: a tensor would stay as it is.
    """
    program = facts.training.program
    for scope in program.scopes:
        fallbacks = [(t, v) for t, v in scope.assignments if _falls_back(v, program)]
        asked = [call for call in scope.calls if program.name(call.func) == _AVAILABLE]
        if len(fallbacks) != 1 or len(asked) != 1:
            continue
        device, choice = program.place(fallbacks[0][0], scope), fallbacks[0][1]
        if device is not None:
            yield from ((call, choice) for call in _made_half(scope, device, program, around))


def _made_half(scope: Scope, device: Place, program: Program, around: Surroundings) -> Iterator[ast.Call]:
    """What makes a model half, by whatever path, that the function moves to a device."""
    moved = list(_moved(scope, device, program))
    places = {program.place(model, scope) for model in moved} - {None}
    changed = {place: [c for c in scope.calls if _changes(c, place, scope, program)] for place in places}
    for calls in changed.values():
        dropped = [call for call in calls if isinstance(around.parent(call), ast.Expr)]
        if len(calls) == len(dropped) == 1 and _is_half(calls[0], program) and _is_usual(calls[0], scope, around):
            yield calls[0]
    given = [value for target, value in scope.assignments if changed.get(program.place(target, scope)) == []]
    for call in scope.calls:
        kept = any(call is model for model in (*moved, *given))
        if kept and _is_loaded_half(call, program) and _is_usual(call, scope, around):
            yield call


def _falls_back(node: ast.expr, program: Program) -> bool:
    """``"cuda" if torch.cuda.is_available() else "cpu"``, as strings, as devices, or within ``torch.device``."""
    if isinstance(node, ast.Call) and program.name(node.func) == "torch.device" and node.args:
        node = node.args[0]
    if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Call):
        return False
    other = node.orelse
    if isinstance(other, ast.Call) and program.name(other.func) == "torch.device" and other.args:
        other = other.args[0]
    return program.name(node.test.func) == _AVAILABLE and isinstance(other, ast.Constant) and other.value == "cpu"


def _moved(scope: Scope, device: Place, program: Program) -> Iterator[ast.expr]:
    """What a function moves to a device: ``x`` of ``x.to(device)``."""
    for call in scope.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(program.place(value, scope) == device for value in given):
                yield call.func.value


def _changes(call: ast.Call, place: Place | None, scope: Scope, program: Program) -> bool:
    """Whether a call changes the dtype of what a place holds."""
    func = call.func
    if not isinstance(func, ast.Attribute) or program.place(func.value, scope) != place:
        return False
    return func.attr in _CHANGES or any(program.name(a) in _HALF for a in [*call.args, *_values(call)])


def _is_half(call: ast.Call, program: Program) -> bool:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr == "half" or any(program.name(a) in _HALF for a in [*call.args, *_values(call)])


def _is_loaded_half(call: ast.Call, program: Program) -> bool:
    """``AutoModel.from_pretrained(…, torch_dtype=torch.float16)`` of transformers or diffusers."""
    name = program.name(call.func) or ""
    if name.partition(".")[0] not in _LIBRARIES or not name.endswith(".from_pretrained"):
        return False
    return any(k.arg in ("torch_dtype", "dtype") and program.name(k.value) in _HALF for k in call.keywords)


def _values(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]


def _is_usual(call: ast.Call, scope: Scope, around: Surroundings) -> bool:
    """Whether a call runs unless a caller of the function asks for something else."""
    if isinstance(scope.node, ast.Module):
        return not list(around.tests(call))
    spec = scope.node.args
    arguments = [*spec.posonlyargs, *spec.args]
    defaults = list(zip(arguments[len(arguments) - len(spec.defaults) :], spec.defaults, strict=True))
    defaults += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    usual = {a.arg for a, default in defaults if isinstance(default, ast.Constant) and default.value is True}
    stored = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return all(
        answer and isinstance(test, ast.Name) and test.id in usual - stored for test, answer in around.tests(call)
    )
