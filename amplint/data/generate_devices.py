"""Generates ``devices.json``: which arguments of torch's operations have to lie on one device.

Usage: ``python -m amplint.data.generate_devices [OUT] [--only NAME ...]`` (a few minutes; no GPU is asked).

Every call that ``ops.json`` and ``layers.json`` are measured on is made with one of its arguments in the host's memory
and all others on a device: on fake CUDA tensors (``torch._subclasses``), which compare devices as CUDA's kernels do,
and on ``meta`` tensors, which go through torch's own checks; layers, which need gradients, on these alone.  An argument
is in the list of its operation where each call that has it, with a dimension, raises for the device; of an argument
that is several tensors, also where the first of them alone lies elsewhere.  What neither kind of tensor can be computed
with is left out, as are convolutions, which only their kernels check: nothing is said of what is in no list.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from amplint.data._apart import progress
from amplint.data._calls import Call, tensors_in
from amplint.data._catalog import catalog
from amplint.data._layers import calls_of, layer_classes, samples
from amplint.data.generate_policy import write

if TYPE_CHECKING:
    from collections.abc import Iterator

FAKED, META = "cuda", "meta"


def generate(only: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The whole table, or the named entries of it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    targets, _ = catalog((lambda name: name in only) if only else lambda _name: True)
    progress(f"{len(targets)} callables")
    entries = {name: together(target.calls, (FAKED, META)) for name, target in targets.items()}
    progress("measured functions")
    for name, cls in layer_classes().items():
        if not only or f"torch.nn.{name}" in only:
            entries[f"torch.nn.{name}"] = together(calls_of(cls, samples(name)), (META,))
    entries = {name: found for name, found in entries.items() if found}
    progress(f"{len(entries)} entries")
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "generator": "python -m amplint.data.generate_devices", "ops": entries}


def together(calls: list[Call], devices: tuple[str, ...]) -> list[str]:
    """The parameters whose tensors have to lie where those of the others do, in each call that has them and runs."""
    refused: dict[str, bool] = {}
    for call in calls:
        for name, apart in each_apart(call):
            running = [device for device in devices if _error(call, apart, device, device) is None]
            if running:
                raises = any("device" in (_error(call, apart, device, "cpu") or "") for device in running)
                refused[name] = refused.get(name, True) and raises
    return [name for name, always in refused.items() if always]


def each_apart(call: Call) -> Iterator[tuple[str, frozenset[int]]]:
    """By parameter, the tensors of it that are put elsewhere, by ``id``: all, or the first of several."""
    given = {name: [*tensors_in(value)] for name, value in call.named()}
    for name, tensors in given.items():
        if len(tensors) > 1:
            yield name, frozenset([id(tensors[0])])
        if tensors and any(others for other, others in given.items() if other != name):
            yield name, frozenset(map(id, tensors))


def _error(call: Call, apart: frozenset[int], device: str, elsewhere: str) -> str | None:
    """What a call raises on a device where some of its tensors lie elsewhere."""
    with FakeTensorMode() if device == FAKED else contextlib.nullcontext(), contextlib.redirect_stderr(io.StringIO()):
        args = tuple(_placed(value, apart, device, elsewhere) for value in call.args)
        kwargs = {name: _placed(value, apart, device, elsewhere) for name, value in call.kwargs.items()}
        try:
            with torch.no_grad():
                call.function(*args, **kwargs)
        except Exception as raised:
            return str(raised).partition("\n")[0].lower()
    return None


def _placed(value: Any, apart: frozenset[int], device: str, elsewhere: str) -> Any:
    """An argument with its tensors where they are to lie; those that are told apart have a dimension."""
    if isinstance(value, torch.Tensor):
        chosen = id(value) in apart
        shape = value.shape or ((1,) if chosen else ())
        return torch.empty(shape, dtype=value.dtype, device=elsewhere if chosen else device)
    if isinstance(value, (list, tuple)) and any(True for _ in tensors_in(value)):
        items = [_placed(item, apart, device, elsewhere) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


if __name__ == "__main__":
    write(generate, Path(__file__).with_name("devices.json"), "Measure what has to lie on one device.")
