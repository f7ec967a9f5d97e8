"""Losses that are scaled for float16 while the forward pass behind them runs in float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.syntax.bindings import paired
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Place, Scope
    from amplint.infer.state.facts import FileFacts

_OF_TORCH = ("autocast", "MixedPrecision", "float16", "half", "HalfTensor")
_LIBRARIES = frozenset(("apex", "deepspeed"))
_ATTRIBUTES = frozenset(("autocast", "half", "MixedPrecision"))
_KEYWORDS = frozenset(("mixed_precision", "precision"))
"""What brings a file's losses into 16 bit in another way: parts of torch, other libraries, attributes of what they
give, and keywords that they take."""
_MODULE_METHODS = frozenset({"parameters", "train", "eval", "zero_grad", "state_dict", "named_parameters"})


def uncast_forwards(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.Call]]:
    """The model's call behind a loss that is scaled, and the backward pass, in a file that has no autocast and no other
    16-bit setting."""
    training = facts.training
    if not training.moments_of(Step.SCALER_STEP) or _has_other_precision(facts):
        return
    around = Surroundings.of(facts.source.tree)
    modules = set(_modules(facts))
    spoken: set[int] = set()
    for moment in training.moments_of(Step.BACKWARD):
        event = moment.event
        things = training.roles.things.get(event.scaler or (), set())
        if event.gradients != (Gradients.SCALED,) or not any(t.role is Role.SCALER and t.node for t in things):
            continue
        func = event.node.func
        if not isinstance(func, ast.Attribute):
            continue
        call = _model_call(func.value, event.scope, facts, modules)
        if call is not None and id(call) not in spoken and not _in_unknown_region(call, around):
            spoken.add(id(call))
            yield call, event.node


def _has_other_precision(facts: FileFacts) -> bool:
    """Whether a file brings its losses into 16 bit by something else than the scenario."""
    if any(part in _OF_TORCH for reference in facts.references for part in reference.name.split(".")):
        return True
    for node in nodes_of_kind(facts.source.tree, ast.Import, ast.ImportFrom, ast.Attribute, ast.keyword):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if any(name.partition(".")[0] in _LIBRARIES or name in _ATTRIBUTES for name in modules):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            return True
        if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
            return True
    return False


def _in_unknown_region(call: ast.Call, around: Surroundings) -> bool:
    """Whether a call stands in a ``with`` of something that is not torch's: it may open an autocast region."""
    regions = [item.context_expr for a in around.ancestors(call) if isinstance(a, ast.With) for item in a.items]
    opened = [region.func if isinstance(region, ast.Call) else region for region in regions]
    return any(not around.torch_name(region) for region in opened)


def _modules(facts: FileFacts) -> Iterator[Place]:
    """The places of models that a caller passes: what is trained, evaluated or asked for parameters, where it is a
    parameter or was set to one. What the file makes may have regions of its own in its forward."""
    program = facts.training.program
    passed: set[Place | None] = set()
    for scope in program.scopes:
        parameters = {argument.arg for argument in scope.parameters()}
        passed |= {(id(scope), name) for name in parameters}
        for target, value in scope.assignments:
            for one, other in paired(target, value):
                if isinstance(one, ast.Attribute) and _root(other, facts) in parameters:
                    passed.add(program.place(one, scope))
    for scope in program.scopes:
        for call in scope.calls:
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in _MODULE_METHODS:
                place = program.place(func.value, scope)
                if place is not None and place in passed:
                    yield place


def _root(node: ast.expr, facts: FileFacts) -> str | None:
    """The variable that ``model``, ``model.cuda()`` or ``DistributedDataParallel(model)`` goes back to."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if not isinstance(node, ast.Call):
            return None
        if (facts.training.program.name(node.func) or "").startswith("torch.") and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None


def _model_call(loss: ast.expr, scope: Scope, facts: FileFacts, modules: set[Place]) -> ast.Call | None:
    """The first call of a model that the value of an expression goes back to, through the function's variables."""
    program = facts.training.program
    pending, seen = [loss], set()
    while pending:
        expression = pending.pop(0)
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and program.place(node.func, scope) in modules:
                return node
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                pending += [value for target, value in scope.assignments if _binds(target, node.id)]
    return None


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))
