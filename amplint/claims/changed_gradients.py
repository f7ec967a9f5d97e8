"""Gradients to which something without the loss scale is added while they are multiplied by it: noise, or a part of
the weight that they belong to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.claims.surroundings import FunctionNode
from amplint.infer.flow.training.events import of_gradient
from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Program, Scope
    from amplint.infer.flow.training.steps import Moment
    from amplint.infer.state.facts import FileFacts

_RANDOM = frozenset(f"torch.{name}" for name in ("rand", "randn", "rand_like", "randn_like", "normal"))
_RANDOM_IN_PLACE = ("normal_", "uniform_", "exponential_")
_ABOUT = ("shape", "size", "dtype", "device", "ndim", "dim", "numel", "layout", "new_zeros", "new_empty", "new_ones")
"""What is asked of a tensor without its values."""
_SCALED = ("grad", "get_scale", "_scale", "norm")
"""What a value that goes with the loss scale is made of."""
_DEEPEST = 3


class Change(NamedTuple):
    """A statement that adds to a gradient, what it adds, and the backward pass that left it scaled."""

    node: ast.stmt | ast.Call
    added: ast.expr
    backward: Moment


def changed_gradients(facts: FileFacts, around: Surroundings) -> Iterator[Change]:
    """Where noise, or a multiple of a weight, is added to gradients of a scaled loss, behind its backward pass and
    before anything unscales them: the scaler's step then divides that by the scale too.

    In the function of the backward pass itself, or in one of the file that it calls in between.
    """
    program = facts.training.program
    for scope in program.scopes:
        for node, gradient, added in _additions(scope, around):
            weighed = [k.value for k in node.keywords] if isinstance(node, ast.Call) else []
            if any(_goes_with_scale(part, around) for value in (added, *weighed) for part in _parts(value, around)):
                continue
            if not _is_noise_or_weight(added, gradient, program, around):
                continue
            backward = next(filter(None, (_scaled_by(facts, *at) for at in _positions(node, scope, facts))), None)
            if backward is not None:
                yield Change(node, added, backward)


def _additions(scope: Scope, around: Surroundings) -> Iterator[tuple[ast.stmt | ast.Call, ast.expr, ast.expr]]:
    """What a function adds to gradients: the statement or call, the gradient, and what is added."""
    if not isinstance(scope.node, FunctionNode):
        return
    for node in nodes_below(scope.node):
        found: tuple[ast.expr, ast.expr] | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            found = node.target, node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
            sides, target = (node.value.left, node.value.right), node.targets[0]
            others = [side for side in sides if ast.unparse(side) != ast.unparse(target)]
            if len(others) == 1 and isinstance(node.value.op, ast.Add | ast.Sub):
                found = target, others[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            found = (node.func.value, node.args[0]) if node.func.attr in ("add_", "sub_") else None
        if found is not None and of_gradient(found[0]) and around.function(node) is scope.node:
            assert isinstance(node, ast.stmt | ast.Call)
            yield node, *found


def _goes_with_scale(part: ast.AST, around: Surroundings) -> bool:
    return isinstance(part, ast.Attribute) and part.attr in _SCALED and not _is_only_asked_about(part, around)


def _is_noise_or_weight(added: ast.expr, gradient: ast.expr, program: Program, around: Surroundings) -> bool:
    """Whether a value is made of random numbers, or of values of the gradient's own weight."""
    owner = next(part for part in ast.walk(gradient) if isinstance(part, ast.Attribute) and part.attr == "grad")
    weight, shown = ast.unparse(owner.value), False
    for part in _parts(added, around):
        if isinstance(part, ast.Call):
            in_place = isinstance(part.func, ast.Attribute) and part.func.attr in _RANDOM_IN_PLACE
            if in_place or program.name(part.func) in _RANDOM:
                shown = True
        if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) == weight:
            shown = shown or not _is_only_asked_about(part, around)
    return shown


def _parts(node: ast.expr, around: Surroundings, depth: int = _DEEPEST) -> Iterator[ast.AST]:
    """The parts of an expression, and of what its variables are given once."""
    for part in ast.walk(node):
        yield part
        given = around.only_value(part) if isinstance(part, ast.Name) and depth else None
        if given is not None:
            yield from _parts(given, around, depth - 1)


def _is_only_asked_about(node: ast.expr, around: Surroundings) -> bool:
    """Whether no value of a tensor is read: its shape is, it is what random numbers are made like, or its gradient is
    what is read."""
    parent = around.parent(node)
    if isinstance(parent, ast.Attribute):
        return (
            parent.attr == "grad"
            or parent.attr in _ABOUT
            or (parent.attr == "data" and _is_only_asked_about(parent, around))
        )
    return isinstance(parent, ast.Call) and node in parent.args and around.called(parent).endswith("_like")


def _positions(node: ast.AST, scope: Scope, facts: FileFacts) -> Iterator[tuple[Scope, int]]:
    """Where something happens among the events of a training step: in its function, or where that is called."""
    training = facts.training
    if any(moment.event.scope is scope for moment in training.moments):
        yield scope, getattr(node, "lineno", 0)
        return
    for caller in training.program.scopes:
        for call in caller.calls:
            if training.program.callee(call, caller) is scope:
                yield caller, call.lineno


def _scaled_by(facts: FileFacts, scope: Scope, row: int) -> Moment | None:
    """The backward pass of a scaled loss right before a row of a function, where nothing has unscaled by what follows
    that row."""
    there = [moment for moment in facts.training.moments if moment.event.scope is scope]
    before = [moment for moment in there if moment.event.node.lineno < row]
    after = [moment for moment in there if moment.event.node.lineno > row]
    if not before or not after or before[-1].event.step is not Step.BACKWARD:
        return None
    met = after[0].gradients
    if Gradients.SCALED not in met or not met <= {Gradients.SCALED, Gradients.PLAIN}:
        return None
    passes = (moment for moment in reversed(before) if Gradients.SCALED in moment.event.gradients)
    return next(passes, None)
