"""Calls that autocast refuses to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.operands import short_name
from amplint.frozen import dataclass
from amplint.infer.torch_model.torch_ops import BANNED, find_op

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, TorchCall

_SIGMOIDS = ("sigmoid", "expit")
SUFFIX = "_with_logits"


@dataclass(frozen=True, slots=True)
class BannedCall:
    """A banned call, and where the regions that it runs in are entered.

    ``name`` is its function where the code names that itself, None where it calls a layer or alias; ``takes_logits``
    says whether torch has a form of it that does. ``made`` is where the file constructs the layer that is called.
    ``sigmoid`` is the call that gives its input, a method where ``method`` says so.
    """

    node: ast.Call
    operation: str
    regions: tuple[ast.expr, ...]
    name: str | None
    takes_logits: bool
    made: ast.Call | None
    sigmoid: ast.Call | None
    method: bool


def _by_node(facts: FileFacts) -> list[list[TorchCall]]:
    """The calls of banned operations; several for one node where it runs in several states."""
    found: dict[int, list[TorchCall]] = {}
    for call in facts.calls:
        op = find_op(call.name, facts.torch_version)
        if op is not None and op.policy.get(facts.device) == BANNED:
            found.setdefault(id(call.node), []).append(call)
    return list(found.values())


def _banned_lanes(facts: FileFacts, call: TorchCall) -> Iterator[int]:
    """The scenarios in which a call runs under an autocast that the code or the module it belongs to can count on."""
    for lane in range(len(facts.scenarios)):
        explicit = call.region is not None and call.region.inside[lane].on
        if call.autocast[lane].on and call.live >> lane & 1 and (explicit or call.in_module):
            yield lane


def _described(facts: FileFacts, calls: list[TorchCall]) -> BannedCall:
    call = calls[0]
    regions = [each.region for each in calls if each.region is not None and any(s.on for s in each.region.inside)]
    direct = any(r.call is call.node and r.name == call.name for r in facts.references)
    given = next((keyword.value for keyword in call.node.keywords if keyword.arg == "input"), None)
    given = given or next(iter(call.node.args), None)
    sigmoid = next((c for c in facts.calls if c.node is given and short_name(c.name) in _SIGMOIDS), None)
    layer = facts.layers_called.get(id(call.node))
    return BannedCall(
        node=call.node,
        operation=call.name,
        regions=tuple(region.node for region in regions),
        name=call.name if direct else None,
        takes_logits=find_op(call.name + SUFFIX) is not None,
        made=facts.constructor(layer) if layer is not None else None,
        sigmoid=sigmoid.node if sigmoid is not None else None,
        method=sigmoid is not None and sigmoid.name.startswith("torch.Tensor."),
    )


def banned_calls(facts: FileFacts) -> Iterator[tuple[BannedCall, tuple[str, ...]]]:
    """The banned calls of a file, each with the scenarios in which it fails."""
    for calls in _by_node(facts):
        lanes = {lane for call in calls for lane in _banned_lanes(facts, call)}
        scenarios = tuple(name for name in facts.names(lanes) if name in facts.all_scenarios())
        if scenarios:
            yield _described(facts, calls), scenarios
