"""The calls that the tables of operations are measured on, run on a GPU and emulated, in many dtypes and regions."""

from __future__ import annotations

import contextlib
import copy
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._calls import Assignment, Call, tensors_in
from amplint.data._catalog import catalog, public_names
from amplint.data._layers import Sample, calls_of, layer_classes, samples
from amplint.data._measure import FULL, splits
from amplint.data._recorded import PLAIN, said, written
from amplint.data.generate_devices import each_apart
from amplint.emulation import emulated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LAYERS = "torch.nn."
REGIONS = {PLAIN: None, "float16": torch.float16, "bfloat16": torch.bfloat16}
LOW = (torch.float16, torch.bfloat16)
ALIKE = (FULL, *LOW, torch.float64, torch.int64)
GPU, EMULATED = "gpu", "emulated"
#: Errors after which every later call of the process fails.
POISON = ("device-side assert", "illegal memory access", "launch failure", "misaligned address")


@dataclass(frozen=True)
class Ran:
    """What one call gave in one region (``plain`` or autocast's dtype): dtypes, or ``!`` and its error's first line."""

    call: int
    region: str
    operands: str
    outcome: Any

    @property
    def poisons(self) -> bool:
        """Whether the process's CUDA context is gone with it."""
        return isinstance(self.outcome, str) and any(mark in self.outcome for mark in POISON)


def names() -> list[str]:
    """Every public operation and layer; some have no calls."""
    return [*public_names(), *(LAYERS + name for name in layer_classes())]


def calls_by_name(wanted: Iterable[str], side: str) -> dict[str, list[Call]]:
    """The calls of callables, with tensors on the GPU or on the CPU."""
    targets, _ = catalog(frozenset(wanted).__contains__)
    found = {name: target.calls for name, target in targets.items() if not target.attribute}
    if side == GPU:
        found = {
            name: [replace(c, args=_moved(c.args), kwargs=_moved(c.kwargs)) for c in of] for name, of in found.items()
        }
    layers = layer_classes()
    for name in wanted:
        if name.startswith(LAYERS) and (cls := layers.get(name.removeprefix(LAYERS))) is not None:
            ways = samples(name.removeprefix(LAYERS))
            if side == GPU:
                ways = [Sample(_moved(way.made), _moved(way.given)) for way in ways]
            with torch.device("cuda") if side == GPU else contextlib.nullcontext(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = calls_of(cls, ways)
    return found


def _moved(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cuda()
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).cuda()
    if isinstance(value, dict):
        return {key: _moved(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and any(True for _ in tensors_in(value)):
        moved = [_moved(one) for one in value]
        return moved if isinstance(value, list) else tuple(moved)
    return value


def ran(calls: list[Call], side: str) -> Iterator[Ran]:
    """Every call in every region and choice of dtypes; emulated without autocast by the CPU's kernels as they are."""
    for region, dtype in REGIONS.items():
        emulates = side == EMULATED and dtype is not None
        with emulated("cuda") if emulates else contextlib.nullcontext():
            for (number, call), dtypes in ((one, dtypes) for one in enumerate(calls) for dtypes in _choices(one[1])):
                with torch.autocast("cuda", dtype=dtype or LOW[0], enabled=dtype is not None):
                    outcome = call.run(dtypes)
                yield Ran(number, region, written(dtypes), said(outcome))


def _choices(call: Call) -> list[Assignment]:
    operands = list(call.operands("floating"))
    if not operands:
        return [{}]
    found: list[Assignment] = [dict.fromkeys(operands, dtype) for dtype in ALIKE]
    for low in LOW:
        found += [{one: low if one in split else FULL for one in operands} for split in splits(operands)]
        found += [{**dict.fromkeys(operands, low), one: torch.int64} for one in operands if len(operands) > 1]
    return found


def raises_apart(calls: list[Call]) -> dict[str, list[bool]]:
    """By parameter: whether each call that runs on the GPU raises where that alone lies in the host's memory."""
    found: dict[str, list[bool]] = {}
    for call in calls:
        for parameter, chosen in each_apart(call):
            if _runs(call, chosen, "cuda"):
                found.setdefault(parameter, []).append(not _runs(call, chosen, "cpu"))
    return found


def _runs(call: Call, chosen: frozenset[int], elsewhere: str) -> bool:
    args = tuple(_placed(value, chosen, elsewhere) for value in call.args)
    kwargs = {name: _placed(value, chosen, elsewhere) for name, value in call.kwargs.items()}
    try:
        with torch.no_grad():
            call.function(*args, **kwargs)
        torch.cuda.synchronize()
    except Exception:
        return False
    return True


def _placed(value: Any, chosen: frozenset[int], elsewhere: str) -> Any:
    """An argument on the GPU but for the chosen tensors, which have a dimension."""
    if isinstance(value, torch.Tensor):
        if id(value) not in chosen:
            return value.detach().clone().cuda()
        return value.detach().clone().reshape(value.shape or (1,)).to(elsewhere)
    if isinstance(value, (list, tuple)) and any(True for _ in tensors_in(value)):
        items = [_placed(item, chosen, elsewhere) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
