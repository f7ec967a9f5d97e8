"""Calls as source, and what the inference says about them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.annotate.rows import Row, file_dtypes
from amplint.infer.lattice.dtypes import NAMES
from amplint.infer.lattice.scenarios import CONTROL
from amplint.source import Source

if TYPE_CHECKING:
    from calls import Case, Outcome

MODULE = Path("/agreement/program.py")
BATCH = 150
"""Calls in one program: its steps stay within the bound of the inference."""
REGIONS = {
    "none": "torch.no_grad()",
    "cpu": 'torch.autocast("cpu", dtype=torch.bfloat16)',
    "cuda": 'torch.autocast("cuda", dtype=torch.bfloat16)',
}


class NoSource(Exception):
    """An argument that is not written down: a callable, a generator, an object."""


@dataclass(frozen=True)
class Written:
    """The lines of a call, the last of which has the result on its right side."""

    lines: tuple[str, ...]


def written(case: Case) -> Written:
    """A call as source. Raises NoSource."""
    lines: list[str] = []
    args = [_text(value, lines) for value in case.arguments[0]]
    keywords = [f"{name}={_text(value, lines)}" for name, value in case.arguments[1].items()]
    function = case.name
    if case.layer is not None:
        made = [_text(value, lines) for value in case.layer[0]]
        made += [f"{name}={_text(value, lines)}" for name, value in case.layer[1].items()]
        lines.append(f"m = {case.name}({', '.join(made)}).to({case.parameters})")
        function = "m"
    elif function.startswith("torch.Tensor."):
        function = args.pop(0) + "." + function.removeprefix("torch.Tensor.")
    return Written((*lines, f"r = {function}({', '.join([*args, *keywords])})"))


def _text(value: Any, lines: list[str]) -> str:
    if isinstance(value, torch.Tensor):
        name = f"t{len(lines)}"
        lines.append(f"{name} = torch.empty({tuple(value.shape)}, dtype={value.dtype})")
        return name
    if isinstance(value, (list, tuple)):
        items = [_text(item, lines) for item in value]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    raise NoSource(type(value).__name__)


def inferred(programs: list[tuple[Written, Outcome]], regime: str) -> list[Any]:
    """What the inference says of each call, in the shape of what torch gave: a tuple of dtypes, None where unknown.

    "nothing" where it says that there is no tensor.
    """
    results: list[Any] = []
    for start in range(0, len(programs), BATCH):
        results += _inferred(programs[start : start + BATCH], regime)
    return results


def _inferred(programs: list[tuple[Written, Outcome]], regime: str) -> list[Any]:
    lines = ["import torch", f"with {REGIONS[regime]}:"]
    places: list[Any] = []
    for program, outcome in programs:
        lines += [f"    {line}" for line in program.lines]
        last = len(lines)
        places.append(_places(outcome, "r", lines, last))
    source = Source(MODULE, ("\n".join(lines) + "\n").encode())
    device = "cpu" if regime == "cpu" else "cuda"
    rows: dict[int, Row] = {}
    for row in file_dtypes(source, scenarios=(CONTROL,), device=device, torch_version=(2, 13)).rows:
        line = row.span.start.row
        text = lines[line - 1]
        if row.span.end.row == line and text.endswith((")", "]")) and row.span.end.column == len(text) + 1:
            shown = rows.get(line)
            if shown is None or row.span.start < shown.span.start:
                whole = text.startswith("    r[") or row.span.start.column == len("    r = ") + 1
                if whole:
                    rows[line] = row
    return [_said(place, rows) for place in places]


def _places(outcome: Outcome, expression: str, lines: list[str], line: int) -> Any:
    """The line at which each part of a result stands."""
    if not isinstance(outcome, list):
        return line
    parts = []
    for index, part in enumerate(outcome):
        item = f"{expression}[{index}]"
        lines.append(f"    {item}")
        parts.append(_places(part, item, lines, len(lines)))
    return parts


def _said(place: Any, rows: dict[int, Row]) -> Any:
    if isinstance(place, list):
        return [_said(part, rows) for part in place]
    row = rows.get(place)
    return "nothing" if row is None else row.dtypes[0]


def judge(truth: Outcome, said: Any) -> str:
    """exact, partial, unknown or wrong, the worst of a result's parts."""
    if isinstance(truth, list):
        order = ("wrong", "unknown", "partial", "exact")
        return min((judge(a, b) for a, b in zip(truth, said, strict=True)), key=order.index, default="exact")
    if truth == "none":
        return "wrong" if isinstance(said, tuple) else "exact"
    if said == "nothing":
        return "wrong"
    if said is None:
        return "unknown"
    if truth not in NAMES or truth not in said:
        return "wrong"
    return "exact" if len(said) == 1 else "partial"
