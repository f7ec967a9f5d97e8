"""Models that are converted to 16 bit, and trained by an optimizer whose gradients a scaler unscales."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.flow.training.assumed import conditions
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Place, Scope
    from amplint.infer.flow.training.steps import Moment
    from amplint.infer.flow.training.training import Training
    from amplint.infer.state.facts import FileFacts

_KEEPS = frozenset({"cuda", "cpu", "to", "train", "eval", "requires_grad_", "xpu", "npu", "compile"})
_WRAPPERS = frozenset(
    {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}
    | {"torch.nn.parallel.DistributedDataParallel", "torch.nn.SyncBatchNorm.convert_sync_batchnorm"}
)


_DTYPES = {"torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16"}
_METHODS = {"half": "float16", "bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class _Half:
    """A conversion of a whole model to a 16-bit dtype: the call, the model's place, and the tests that it hangs on."""

    node: ast.Call
    dtype: str
    place: Place
    tests: frozenset[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class ScaledHalf:
    """A conversion of a model to 16 bit, the dtype, and where a scaler meets the gradients of its parameters."""

    node: ast.Call
    dtype: str
    moment: Moment


def _trained(training: Training) -> Iterator[tuple[Place, frozenset[Place]]]:
    """Optimizers by place, with the places of the models whose parameters they were made of."""
    program = training.program
    for scope in program.scopes:
        for target, value in scope.assignments:
            place = program.place(target, scope)
            if place is None or not training.roles.has(value, scope, Role.OPTIMIZER) or not isinstance(value, ast.Call):
                continue
            models = (
                {
                    program.place(node.func.value, scope)
                    for argument in _followed(value.args[0], scope)
                    for node in ast.walk(argument)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in ("parameters", "named_parameters")
                }
                if value.args
                else set()
            )
            yield place, frozenset(model for model in models if model is not None)


def _followed(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """An argument, and what the variable that it is was assigned."""
    if not isinstance(node, ast.Name):
        return [node]
    return [value for target, value in scope.assignments if isinstance(target, ast.Name) and target.id == node.id]


def _conversions(training: Training, around: Surroundings) -> Iterator[_Half]:
    """Models that were converted to 16 bit and, as far as the file shows, stay so."""
    program = training.program
    for scope in program.scopes:
        for call in scope.calls:
            dtype = _to_half(call, training)
            if dtype is None or not isinstance(call.func, ast.Attribute):
                continue
            place = program.place(call.func.value, scope)
            parent: ast.AST | None = around.parent(call)
            current: ast.expr = call
            while isinstance(parent, ast.Attribute | ast.Call) and _chain(parent, current):
                current, parent = parent, around.parent(parent)
            targets = parent.targets if isinstance(parent, ast.Assign) and parent.value is current else []
            places = {program.place(target, scope) for target in targets} | {place}
            for found in places:
                if found is not None and not _changed(found, training, call):
                    yield _Half(call, dtype, found, _tests(call, around))


def _chain(parent: ast.AST, child: ast.expr) -> bool:
    """Whether a parent goes on with what its child gives: ``child.cuda()``."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in _KEEPS
    return isinstance(parent, ast.Call) and parent.func is child


def _to_half(call: ast.Call, training: Training) -> str | None:
    """The 16-bit dtype that a call converts a model to, or loads one in."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return None
    if func.attr in _METHODS:
        return _METHODS[func.attr] if not call.args else None
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if func.attr == "to":
        values = [*call.args, *(named[k] for k in ("dtype",) if k in named)]
    elif func.attr == "from_pretrained":
        values = [named[k] for k in ("torch_dtype", "dtype") if k in named]
    else:
        return None
    return next((_DTYPES[name] for v in values if (name := training.program.name(v)) in _DTYPES), None)


def _changed(place: Place, training: Training, conversion: ast.Call) -> bool:
    """Whether a model is converted back, or replaced by what something unknown makes of it."""
    program = training.program
    for scope in program.scopes:
        for call in scope.calls:
            func = call.func
            if not isinstance(func, ast.Attribute) or program.place(func.value, scope) != place:
                continue
            if func.attr == "float" or (func.attr == "to" and "float32" in ast.unparse(call)):
                return True
        for target, value in scope.assignments:
            if program.place(target, scope) != place or not isinstance(value, ast.Call):
                continue
            if value.lineno <= conversion.lineno:
                continue
            method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
            if method not in _KEEPS and method not in _METHODS and program.name(value.func) not in _WRAPPERS:
                return True
    return False


def _tests(node: ast.AST, around: Surroundings) -> frozenset[tuple[str, bool]]:
    """The tests that a node runs under, each with its outcome."""
    tests = (part for test, answer in around.tests(node) for part in conditions(test, answer) or [])
    return frozenset((ast.unparse(part), value) for part, value in tests)


def _needed(facts: FileFacts, moment: Moment, around: Surroundings) -> frozenset[tuple[str, bool]]:
    """The tests that must have come out so for a scaler to unscale here: around the call, and its ``enabled``."""
    needed = set(_tests(moment.event.node, around))
    for thing in facts.training.roles.things.get(moment.event.scaler or (), ()):
        if not isinstance(thing.node, ast.Call):
            continue
        needed |= _tests(thing.node, around)
        for keyword in thing.node.keywords:
            if keyword.arg == "enabled":
                needed.update((ast.unparse(part), value) for part, value in conditions(keyword.value, True) or [])
    return frozenset(needed)


def _is_of_another_device(facts: FileFacts, moment: Moment) -> bool:
    """Whether CUDA is not judged, or a scaler is made for another device."""
    things = facts.training.roles.things.get(moment.event.scaler or (), ())
    made = (thing.node.args[0] for thing in things if isinstance(thing.node, ast.Call) and thing.node.args)
    named = (node.value for node in made if isinstance(node, ast.Constant))
    return facts.device != "cuda" or any(isinstance(name, str) and not name.startswith("cuda") for name in named)


def scaled_halves(facts: FileFacts) -> Iterator[ScaledHalf]:
    """The conversions of models to 16 bit, each with the moment at which a scaler meets their gradients.

    It refuses those in float16 (``GradScaler._unscale_grads_``). To unscale those in bfloat16 CUDA has no kernel; the
    CPU has.
    """
    steps = facts.training.moments_of(Step.UNSCALE, Step.SCALER_STEP)
    if not steps:
        return
    around = Surroundings.of(facts.source.tree)
    trained = dict(_trained(facts.training))
    reported: set[int] = set()
    for half in _conversions(facts.training, around):
        for moment in steps:
            models = trained.get(moment.event.optimizer or (), frozenset())
            if half.place not in models or id(half.node) in reported:
                continue
            if half.dtype == "bfloat16" and _is_of_another_device(facts, moment):
                continue
            if half.tests <= _needed(facts, moment, around):
                reported.add(id(half.node))
                yield ScaledHalf(half.node, half.dtype, moment)
