"""Nested regions of torch's deprecated autocast, which compute in their default dtype whatever is around them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.legacy_names import LEGACY
from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.lattice.dtypes import BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts, Region


def _default(region: Region) -> str | None:
    """The default dtype of a nested legacy region that falls back to it, else None."""
    legacy = LEGACY.get(region.name)
    if legacy is None or region.dtype_given or not region.nested or region.call is None:
        return None
    starred = any(isinstance(arg, ast.Starred) for arg in region.call.args)
    if starred or any(keyword.arg is None for keyword in region.call.keywords):
        return None
    enabled = [*region.call.args[:1], *(k.value for k in region.call.keywords if k.arg == "enabled")]
    if any(isinstance(value, ast.Constant) and not value.value for value in enabled):
        return None
    return legacy.default_dtype


def _differs(region: Region, lane: int, scenario: Scenario, default: int) -> bool:
    """Whether the region computes in another low dtype than the program around it in one scenario."""
    before, inside = region.before[lane], region.inside[lane]
    if before.unknown or inside.low != default:
        return False
    if before.on:
        return before.low != default
    around = scenario.autocast or scenario.parameters
    return around in ("float16", "bfloat16") and BITS[around] != default


def default_dtype_regions(facts: FileFacts) -> Iterator[tuple[ast.Call, str, tuple[str, ...], bool]]:
    """The calls that open one, by which name, in which scenarios that is another dtype, and whether a region is around
    it then."""
    lanes: dict[int, set[int]] = {}
    inherits: set[int] = set()
    calls: dict[int, tuple[ast.Call, str]] = {}
    for region in facts.regions:
        default = _default(region)
        if default is None or region.call is None:
            continue
        for lane, scenario in enumerate(facts.scenarios):
            if _differs(region, lane, scenario, BITS[default]):
                lanes.setdefault(id(region.call), set()).add(lane)
                calls[id(region.call)] = region.call, region.name
                if region.before[lane].on:
                    inherits.add(id(region.call))
    for key, (call, name) in calls.items():
        scenarios = tuple(n for n in facts.names(lanes[key]) if n in facts.all_scenarios())
        if scenarios:
            yield call, name, scenarios, key in inherits


def begins_training(call: ast.Call, facts: FileFacts, around: Surroundings) -> bool:
    """Whether a region stands in no other one of its function, which goes back through the loss and steps the optimizer
    itself: that is the program's own loop, and whoever runs one opens no region around it."""
    for ancestor in around.ancestors(call):
        entered = ancestor.items if isinstance(ancestor, ast.With | ast.AsyncWith) else []
        if any(item.context_expr is not call and id(item.context_expr) in facts.opened for item in entered):
            return False
    function = around.function(call)
    events = [moment.event for moment in facts.training.moments if moment.event.scope.node is function]
    backward = any(e.step is Step.BACKWARD and Gradients.MANAGED not in e.gradients for e in events)
    return backward and any(event.step in (Step.OPTIMIZER_STEP, Step.SCALER_STEP) for event in events)
