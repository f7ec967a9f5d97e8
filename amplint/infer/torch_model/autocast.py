"""Autocast regions: how a context manager or decorator changes the state, under the judged device's policy."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.contexts import AutocastContext, AutocastFlag
from amplint.infer.lattice.dtypes import BFLOAT16, FLOAT16, LOW, OFF, UNCERTAIN, UNKNOWN_LANE, Ambient, Autocast, Lane
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import Const, Device, DTypeValue, Value
from amplint.infer.state.facts import Region

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame

LEGACY = {
    "torch.cuda.amp.autocast": ("cuda", FLOAT16),
    "torch.cpu.amp.autocast": ("cpu", BFLOAT16),
}
"""The deprecated spellings: their device and the dtype they fall back to, also in a nested position."""

MODERN = "torch.amp.autocast"

DEFAULT_DTYPE = {"cuda": FLOAT16, "cpu": BFLOAT16, "mps": FLOAT16, "xpu": FLOAT16}
"""``torch.get_autocast_dtype`` outside any region (torch 2.13)."""


def context(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> AutocastContext:
    """The context manager that calling ``name`` makes."""
    if name in LEGACY:
        device: str | None = LEGACY[name][0]
        bound = arguments.bind(("enabled", "dtype", "cache_enabled"))
        fallback: int | None = LEGACY[name][1]
    else:
        bound = arguments.bind(("device_type", "dtype", "enabled", "cache_enabled"))
        device = device_type(bound.get("device_type"))
        fallback = None
    enabled, dtype = bound.get("enabled"), bound.get("dtype")
    if isinstance(dtype, Const) and dtype.value is None:
        dtype = None
    affected = device is None or device == frame.session.device

    def enter_state(before: Autocast) -> Autocast:
        if not affected:
            return before
        return tuple(_entered(frame, lane, state, enabled, dtype, fallback) for lane, state in enumerate(before))

    call = node if isinstance(node, ast.Call) else None
    return AutocastContext(name, enter_state, dtype is not None, node, call)


def device_type(value: Value | None) -> str | None:
    """The device type of an argument; None where it follows a tensor or is not known."""
    options = options_of(value) if value is not None else ()
    if len(options) != 1:
        return None
    option = options[0]
    if isinstance(option, Const) and isinstance(option.value, str):
        return option.value.split(":")[0]
    return option.type if isinstance(option, Device) else None


def _entered(
    frame: Frame, lane: int, state: Ambient, enabled: Value | None, dtype: Value | None, fallback: int | None
) -> Ambient:
    on, off = _enabled(enabled, lane)
    if not on:
        return OFF
    if isinstance(dtype, DTypeValue):
        chosen = dtype.dtypes[lane]
        if not chosen.exact:
            return UNCERTAIN
        if not chosen.mask & LOW and frame.session.device == "cuda":
            # torch 2.13 refuses other dtypes on the other devices and goes on without autocast; CUDA casts to them.
            return UNCERTAIN
        target = Ambient(chosen.mask) if chosen.mask & LOW else OFF
    elif dtype is not None:
        return UNCERTAIN
    elif fallback is not None:
        target = Ambient(fallback)
    else:
        scenario = frame.session.scenarios[lane].autocast
        ambient = frame.session.ambient[lane].low if scenario else 0
        target = Ambient(state.low if state.on else ambient or DEFAULT_DTYPE[frame.session.device])
    return UNCERTAIN if off and target != state else target


def _enabled(value: Value | None, lane: int) -> tuple[bool, bool]:
    """Whether a region can be enabled, and disabled, in a scenario."""
    if value is None:
        return True, False
    if isinstance(value, AutocastFlag):
        return bool(value.on >> lane & 1), bool(value.off >> lane & 1)
    if isinstance(value, Const):
        return bool(value.value), not value.value
    return True, True


def enter(frame: Frame, value: AutocastContext, *, uncertain: bool = False) -> None:
    """Enter a region in a frame. ``uncertain``: the code may enter another context instead."""
    before = frame.autocast
    inside = value.enter(before)
    if uncertain:
        inside = tuple(a if a == b else UNCERTAIN for a, b in zip(before, inside, strict=True))
    region = Region(
        value.node,
        value.name,
        before,
        inside,
        frame.region is not None or frame.in_module,
        value.dtype_given,
        value.call,
    )
    frame.autocast, frame.region = inside, region
    frame.session.recorder.region(frame, region)


def query(frame: Frame, name: str, arguments: Arguments) -> Value:
    """The answer of ``torch.is_autocast_enabled`` and its kin."""
    device = "cpu" if name.endswith("_cpu_enabled") else "cuda"
    if arguments.positional or arguments.keywords:
        device = device_type(arguments.get(0, "device_type")) or frame.session.device
    on = off = 0
    for lane, state in enumerate(frame.autocast):
        enabled = state.on and device == frame.session.device
        maybe = state.unknown and device == frame.session.device
        on |= (1 << lane) if enabled or maybe else 0
        off |= (1 << lane) if not enabled else 0
    return AutocastFlag(on, off)


def dtype_query(frame: Frame, name: str, arguments: Arguments) -> DTypeValue:
    """The dtype that ``torch.get_autocast_dtype`` and its kin give."""
    device = {"torch.get_autocast_gpu_dtype": "cuda", "torch.get_autocast_cpu_dtype": "cpu"}.get(name)
    if device is None:
        device = device_type(arguments.get(0, "device_type")) or frame.session.device
    lanes = []
    for state in frame.autocast:
        if device != frame.session.device:
            lanes.append(Lane(DEFAULT_DTYPE.get(device, FLOAT16)))
        else:
            lanes.append(UNKNOWN_LANE if state.unknown else Lane(state.low or DEFAULT_DTYPE[device]))
    return DTypeValue(tuple(lanes))


def switched_off(frame: Frame, lane: int) -> bool:
    """Whether an enclosing region switched autocast off that was on around it."""
    region = frame.region
    return region is not None and not frame.autocast[lane].low and frame.session.ambient[lane].on
