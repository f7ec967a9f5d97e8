"""Autograd Functions under autocast: the two decorators as written, and Functions that have neither."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.by_hand import agree, all_cast, by_hand
from amplint.claims.operands import short_name
from amplint.claims.result_uses import is_only_compared
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import Suspect
from amplint.finding import Place
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import LOW
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Cause
    from amplint.infer.lattice.values import Origin
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.function_facts import AutogradFunction, DecoratorFact, Sensitive
    from amplint.infer.state.operand import Operand
    from amplint.infer.syntax.references import Reference


FORWARD, BACKWARD = "custom_fwd", "custom_bwd"
TOKENS = ("autograd", "Function")
MEND = "both decorators"
"""One decorator alone is worse than none, so what mends ``forward`` mends ``backward``."""
SINCE = (2, 4)
"""The torch release that brought ``torch.amp.custom_fwd`` and ``custom_bwd`` with their ``device_type``."""
_SHOWN = 3
"""How many operations a finding names as causes."""
_AUTOCASTS = frozenset(
    {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"}
    | {"torch.cuda.amp.autocast", "torch.cpu.amp.autocast"}
)
_QUERIES = frozenset(
    f"torch.{name}"
    for name in (
        *("is_autocast_enabled", "is_autocast_cpu_enabled", "get_autocast_dtype"),
        *("get_autocast_gpu_dtype", "get_autocast_cpu_dtype"),
    )
)


@dataclass(frozen=True, slots=True)
class Custom:
    """One of the two decorators as written. ``name`` is its torch name where it is written by it, None behind another
    name of the file; ``device_type`` and ``cast_inputs`` are the source of its arguments."""

    role: str
    node: ast.expr
    name: str | None
    device_type: str | None
    cast_inputs: ast.expr | None

    @property
    def device(self) -> str | None:
        """The device type where it is written out."""
        if self.device_type is None:
            return None
        try:
            value = ast.literal_eval(self.device_type)
        except (ValueError, SyntaxError):
            return None
        return value if isinstance(value, str) else None


def role_of(name: str | None) -> str | None:
    """Which of the two decorators a torch name is."""
    if name is None or not name.startswith("torch."):
        return None
    short = short_name(name)
    return short if short in (FORWARD, BACKWARD) else None


def readable(function: AutogradFunction) -> bool:
    """Whether it is known what every decorator of forward and backward does."""
    return all(d.name is not None for d in (*function.forward_decorators, *function.backward_decorators))


def customs(facts: FileFacts, decorators: tuple[DecoratorFact, ...]) -> tuple[Custom, ...]:
    """Those of a method's decorators that carry autocast's state, outermost first."""
    names = {id(r.call or r.node): r.name for r in facts.references if r.decorates is not None}
    found = []
    for decorator in decorators:
        role = role_of(decorator.name)
        if role is None:
            continue
        name = names.get(id(decorator.node))
        if role_of(name) is None:
            name = None
        given: dict[str | None, ast.expr] = {}
        if isinstance(decorator.node, ast.Call):
            if decorator.node.args and isinstance(decorator.node.args[0], ast.Constant):
                given["device_type"] = decorator.node.args[0]
            given.update((keyword.arg, keyword.value) for keyword in decorator.node.keywords)
        device = facts.source.segment(facts.source.span(given["device_type"])) if "device_type" in given else None
        if name is not None and name.startswith("torch.cuda."):
            device = '"cuda"'
        found.append(Custom(role, decorator.node, name, device, given.get("cast_inputs")))
    return tuple(found)


def autocast_scenarios(facts: FileFacts) -> tuple[str, ...]:
    """The judged scenarios in which autocast is on."""
    return tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)


def missing_both(facts: FileFacts) -> Iterator[AutogradFunction]:
    """Functions that autocast reaches and that have neither of the two decorators.

    Autocast decides about an operand of forward whose dtype is known, and rounds something that gets into backward, or
    writes it into what does. What asks for autocast's state itself has its own way with it. Torch no longer runs a
    Function that is an object.
    """
    decorated = {r.decorates for r in facts.references if role_of(r.name) is not None} - {None}
    for function in facts.autograd_functions:
        if function.forward is None or function.backward is None or not readable(function):
            continue
        if any(role_of(d.name) for d in (*function.forward_decorators, *function.backward_decorators)):
            continue
        if function.setup_context in decorated or _regions_in(facts, function.backward):
            continue
        if _only_raises(function.backward) or _asks_for_autocast(facts, function.forward):
            continue
        if _is_made_only(facts, function):
            continue
        untouched = function.settled and not function.sensitive_backward
        if untouched and not any(_disagrees(facts, each) for each in function.sensitive_forward if each.variant):
            continue
        forward = _ambient(facts, function.forward, _own(facts, function, function.sensitive_forward))
        forward = tuple(operation for operation in forward if not _is_only_compared(facts, operation))
        rounded = function.rounded or any(operation.variant for operation in forward)
        if rounded and any(operation.known for operation in forward):
            yield replace(function, sensitive_forward=forward)


def _disagrees(facts: FileFacts, operation: Sensitive) -> bool:
    """Whether operands may have two dtypes under autocast, which an ``out=`` or in-place form takes as they are.

    Those of which nothing is known do not count.
    """
    lanes = (lane for lane, scenario in enumerate(facts.scenarios) if scenario.autocast)
    found = ({operand.value.dtypes[lane].mask for operand in operation.operands} - {0} for lane in lanes)
    return any(len(dtypes) > 1 for dtypes in found)


def _own(facts: FileFacts, function: AutogradFunction, operations: tuple[Sensitive, ...]) -> tuple[Sensitive, ...]:
    """Without the operations of other Functions of the file that it applies: no gradient of theirs comes through it."""
    others = [facts.span(other.node) for other in facts.autograd_functions if other.node is not function.node]
    return tuple(
        operation
        for operation in operations
        if operation.cause.filename != facts.path or not any(other.contains(operation.cause.span) for other in others)
    )


def _is_only_compared(facts: FileFacts, operation: Sensitive) -> bool:
    """Whether nothing but comparisons use what an operation gives."""
    around = Surroundings.of(facts.source.tree)
    nodes = nodes_of_kind(facts.source.tree, ast.Call, ast.BinOp)
    node = next((n for n in nodes if facts.span(n) == operation.cause.span), None)
    function = around.function(node) if node is not None else None
    if node is None or function is None or operation.cause.filename != facts.path:
        return False
    return is_only_compared(around, function, node)


def _is_made_only(facts: FileFacts, function: AutogradFunction) -> bool:
    """Whether the file makes objects of a Function whose forward is a method of theirs, and never applies it."""
    static = any(isinstance(d.node, ast.Name) and d.node.id == "staticmethod" for d in function.forward_decorators)
    name = function.node.name
    made = any(getattr(call.func, "id", "") == name for call in nodes_of_kind(facts.source.tree, ast.Call))
    nodes = nodes_of_kind(facts.source.tree, ast.Attribute) if made and not static else ()
    applied = any(node.attr == "apply" and getattr(node.value, "id", "") == name for node in nodes)
    return made and not static and not applied


def _only_raises(method: ast.FunctionDef) -> bool:
    """Whether a method refuses to be called."""
    first = next((s for s in method.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))), None)
    return isinstance(first, ast.Raise)


def suspect_at(facts: FileFacts, function: AutogradFunction, method: ast.FunctionDef, message: str) -> Suspect:
    """A finding at a method's ``def``; its causes are the first operations that autocast decides about."""
    span = facts.source.header_span(method)
    own = function.sensitive_forward if method is function.forward else function.sensitive_backward
    own = own or function.sensitive_forward
    causes = tuple(_cause(operation, function) for operation in own[:_SHOWN])
    backward = function.sensitive_backward
    cast = [each for each in backward if by_hand(each) or all_cast(each)]
    mostly = bool(cast) and 2 * len(cast) >= len(backward)
    aligned = mostly and all(each in cast or agree(each) for each in backward)
    unrounded = bool(backward) and not any(_gets_rounded(facts, function, each) for each in backward)
    standing = ASSUMED.doubted(*holding({doubts.CAST_BY_HAND: aligned, doubts.BACKWARD_UNROUNDED: unrounded}))
    place = Place(facts.path, facts.source.header_span(function.node))
    return Suspect(span, span, message, autocast_scenarios(facts), standing, causes, data=function, culprit=place)


def _gets_rounded(facts: FileFacts, function: AutogradFunction, operation: Sensitive) -> bool:
    """Whether an operation of backward is given what autocast made 16-bit, whatever callers pass.

    A 16-bit gradient stays so where it meets arguments that forward does not multiply, a scale say: it is float32 where
    it meets the others, which autocast casts in forward alone.
    """
    factors = [operand for each in function.sensitive_forward for operand in each.operands]
    multiplied = {id(part.node) for factor in factors for part in _sources(factor) if isinstance(part.node, ast.arg)}
    for lane in (number for number, scenario in enumerate(facts.scenarios) if scenario.autocast):
        for operand in operation.operands:
            parts = list(_sources(operand, lane))
            rounded = operand.value.dtypes[lane].certain & LOW or any(part.dtypes[lane].certain & LOW for part in parts)
            if rounded and not any(id(part.node) in multiplied for part in parts):
                return True
    return False


def _sources(operand: Operand, lane: int | None = None) -> Iterator[Origin]:
    """What a tensor is made of, back to arguments of forward, and to what autocast rounded in the scenario ``lane``."""
    pending, seen = [operand.value.origin], set()
    while pending:
        origin = pending.pop()
        if origin is None or id(origin) in seen:
            continue
        seen.add(id(origin))
        yield origin
        if lane is None or not origin.dtypes[lane].certain & LOW:
            pending += origin.parents


def _cause(operation: Sensitive, function: AutogradFunction) -> Cause:
    forward = any(operation is own for own in function.sensitive_forward)
    where = "in forward, where autocast is on" if forward else "in backward, where autocast is off"
    return replace(operation.cause, message=f"{short_name(operation.name)} {where}")


def _regions_in(facts: FileFacts, method: ast.FunctionDef) -> list[Reference]:
    """Autocast contexts that a method opens, or that decorate it."""
    inside = {id(node) for node in ast.walk(method)}
    return [r for r in facts.references if r.name in _AUTOCASTS and r.call is not None and id(r.call) in inside]


def _asks_for_autocast(facts: FileFacts, method: ast.FunctionDef) -> bool:
    """Whether a method looks at autocast's state."""
    inside = {id(node) for node in ast.walk(method)}
    return any(r.name in _QUERIES and id(r.node) in inside for r in facts.references)


def _ambient(facts: FileFacts, method: ast.FunctionDef, operations: tuple[Sensitive, ...]) -> tuple[Sensitive, ...]:
    """The operations that are not inside an autocast context of the method itself."""
    own = {id(r.call) for r in _regions_in(facts, method)}
    if own & {id(decorator) for decorator in method.decorator_list}:
        return ()
    covered = [
        facts.source.span(node)
        for node in nodes_of_kind(method, ast.With)
        if any(id(item.context_expr) in own for item in node.items)
    ]
    causes = ((operation, operation.cause) for operation in operations)
    return tuple(o for o, c in causes if c.filename != facts.path or not any(s.contains(c.span) for s in covered))
