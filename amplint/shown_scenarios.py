"""The scenarios that a project's own code shows: what its scripts and settings ask for, where that is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.scripts import is_test
from amplint.preflight.discovery import find_inputs
from amplint.preflight.frameworks import AUTOCASTS, device_of, dtype_of, uses
from amplint.preflight.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amplint.preflight.call import Call
    from amplint.preflight.problem import Place

_BY_PRECISION = {"fp16-mixed": "autocast-fp16", "bf16-mixed": "autocast-bf16", "fp16": "fp16", "bf16": "bf16"}
_DEFAULTS = {"cuda": "float16", "cpu": "bfloat16"}
_BY_DTYPE = {"float16": "autocast-fp16", "bfloat16": "autocast-bf16"}


class Shown(NamedTuple):
    """A scenario, and a place that shows it: what stands there."""

    scenario: str
    place: Place
    text: str


def shown_scenarios(folder: Path) -> list[Shown]:
    """What shows a scenario below an absolute folder, tests left out, in the order of files."""
    inputs = find_inputs([str(folder)])
    settings = read_settings(inputs.files, ("from_pretrained",))
    return [
        shown
        for file in settings.files
        if file.python is None or not is_test(file.python.source.tree)
        for call in file.calls
        for shown in _shown(call)
    ]


def _shown(call: Call) -> Iterator[Shown]:
    if call.name in AUTOCASTS:
        keys = [key for key in ("dtype", "enabled") if key in call.values]
        for scenario in _of_region(call):
            yield Shown(scenario, call.place, call.spelled(*keys))
        return
    for use in uses(call):
        if use.precision in _BY_PRECISION:
            yield Shown(_BY_PRECISION[use.precision], call.at(use.key), call.spelled(use.key))


def _of_region(call: Call) -> tuple[str, ...]:
    """The scenarios of an autocast region: both where the call leaves its dtype, or its device's default one, open."""
    if call.get("enabled") is False:
        return ()
    dtype = dtype_of(call.get("dtype")) if "dtype" in call.values else _DEFAULTS.get(device_of(call) or "")
    if dtype is None:
        return tuple(_BY_DTYPE.values())
    return (_BY_DTYPE[dtype],) if dtype in _BY_DTYPE else ()
