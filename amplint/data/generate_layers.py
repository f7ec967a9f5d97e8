"""Generates ``layers.json``: what ``torch.nn`` layers hold, and what calling them does to dtypes.

Usage: ``python -m amplint.data.generate_layers [OUT] [--only NAME ...]`` (a few minutes; says which torch it runs on).

Each public layer class is constructed with ModuleInfo's arguments, or those of ``layer_forms``, and called like any
operation of ``ops.json``: in many combinations of dtypes of its arguments, parameters and buffers, in training, in
evaluation and without gradients, without autocast and under every device's.  An entry has:

* ``init``: the constructor's parameters in order.
* ``parameters``, ``buffers``: names of what the layer holds itself; ``integers``: buffers with an integer dtype.
* ``if``: by an option unlike its default (``bias=False``, ``weight=tensor``), the names that are there instead.
* ``inner``: attributes that are layers, with their classes.
* ``dtype``: the constructor takes a dtype for them.
* ``like``: another layer, which this one turns into when it is first called.
* ``applies``: the operation of ``ops.json`` that a call consists of.
* ``call``: what calling it does, as in ``ops.json``.  The operands are the arguments, then parameters and buffers by
  name; where there are many, or layers inside, ``parameters*`` stands for all of them.  ``needs`` of a case may name
  options of the constructor.  Left out where it is that of the operation that the layer applies.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from amplint.data._apart import progress
from amplint.data._calls import Call, Target, tensors_in
from amplint.data._catalog import resolve
from amplint.data._entries import entry_of
from amplint.data._layers import (
    Sample,
    calls_of,
    conditions,
    held,
    init_parameters,
    inner_layers,
    layer_classes,
    materialized,
    samples,
    takes_dtype,
)
from amplint.data._measure import measure
from amplint.data._policies import add_older_results, add_policies
from amplint.data._regimes import Measured, casts_by_device
from amplint.data.generate_policy import write
from amplint.emulation import policies as policies_of

FUNCTIONAL = "torch.nn.functional."
#: Layers that run on a device only; what they apply is what another one does.
LIKE = {"SyncBatchNorm": "BatchNorm2d"}


class _Trace(TorchFunctionMode):
    """The public operations that a layer's forward calls itself."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self._inside = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._inside += 1
        try:
            out = func(*args, **(kwargs or {}))
        finally:
            self._inside -= 1
        if not self._inside and any(True for _ in tensors_in(out)) and not isinstance(args[0], nn.Parameter):
            self.names.append(resolve_name(func) or "")
        return out


def applied(layer: nn.Module, sample: Sample) -> str | None:
    """The one operation of ``torch.nn.functional`` that a call of the layer consists of, if so."""
    layer.eval()
    with _Trace() as trace:
        layer(*sample.given[0], **sample.given[1])
    name = trace.names[0] if len(trace.names) == 1 else ""
    return name if name.startswith(FUNCTIONAL) and resolve(name) is not None else None


def by_default(sample: Sample) -> Sample:
    """A sample without its switches (``affine=True``): what the layer holds where nobody asks for more."""
    positional, named = sample.made
    kept = {name: value for name, value in named.items() if not isinstance(value, bool)}
    return sample if len(kept) == len(named) else replace(sample, made=(positional, kept))


def construction(name: str, cls: type[nn.Module], sample: Sample) -> dict[str, Any] | None:
    """All of an entry but what a call does; None where the layer does not run on CPU."""
    layer = materialized(cls, sample)
    if layer is None:
        return None
    entry: dict[str, Any] = {"init": [p.name for p in init_parameters(cls)]}
    public = type(layer).__name__
    if public != name and public in layer_classes():
        return {**entry, "like": public}
    switched = by_default(sample)
    parameters, buffers = held(layer if switched is sample else materialized(cls, switched) or layer)
    options = {
        text: [*found[0], *found[1]]
        for text, found in conditions(cls, switched.made).items()
        if [*found[0], *found[1]] != [*parameters, *buffers]
    }
    optional: dict[str, Any] = {
        "parameters": list(parameters),
        "buffers": list(buffers),
        "integers": [n for n, dtype in buffers.items() if dtype.startswith("int")],
        "if": options,
        "inner": inner_layers(layer),
        "dtype": takes_dtype(cls, sample.made),
        "applies": applied(layer, sample),
    }
    return entry | {key: value for key, value in optional.items() if value}


def generate(only: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The whole table, or the named entries of it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    entries: dict[str, Any] = {}
    calls: dict[str, list[Call]] = {}
    left_out = []
    for name, cls in layer_classes().items():
        if only and name not in only:
            continue
        found = [(sample, construction(name, cls, sample)) for sample in samples(name)[:1]]
        entry = next((entry for _, entry in found if entry is not None), None)
        if entry is None and name in LIKE:
            entry = {"init": [p.name for p in init_parameters(cls)], "like": LIKE[name]}
        if entry is None:
            left_out.append(name)
            continue
        entries[name] = entry
        if "like" not in entry:
            calls[name] = calls_of(cls, samples(name))
    progress(f"{len(entries)} layers with {sum(map(len, calls.values()))} calls; not run: {', '.join(left_out)}")
    add_calls(entries, calls)
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "generator": "python -m amplint.data.generate_layers", "ops": entries}


def add_calls(entries: dict[str, Any], calls: dict[str, list[Call]]) -> None:
    """``call`` of each entry."""
    measured: Measured = {name: [f for f in map(measure, found) if f is not None] for name, found in calls.items()}
    measured = {name: facts for name, facts in measured.items() if facts}
    progress("measured without autocast")
    casts = casts_by_device(measured)
    history = {device: policies_of(device) for device in casts}
    for name, facts in measured.items():
        call = entry_of(Target(f"torch.nn.{name}"), facts)
        if call is None:
            progress(f"{name}: the result of a call follows no rule")
            continue
        add_policies(name, call, {device: found[name] for device, found in casts.items()}, history)
        add_older_results(entries[name].get("applies", ""), call)
        entries[name]["call"] = call


if __name__ == "__main__":
    write(generate, Path(__file__).with_name("layers.json"), "Measure what torch.nn layers hold and do to dtypes.")
