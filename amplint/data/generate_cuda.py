"""Generates ``cuda.json``: what CUDA's kernels do to dtypes otherwise than the CPU's, on which the tables are measured.

Usage: ``python -m amplint.data.generate_cuda RECORD [OUT]``, after ``python benchmarks/gpu_tables --out RECORD`` on a
machine with a GPU (this one needs none).

Each callable of ``ops.json`` and ``layers.json`` with a call that gave something else on the GPU than emulated over the
CPU's kernels is measured twice as they are: as the CPU has it, and with what the GPU gave in the place of what the CPU
gives.  What differs between the two entries are the keys that the entry has for cuda; null where it has none.  A GPU's
torch may be another release than this one's: calls that this one's CPU answers otherwise than that one's did are left
as they are.

``unsupported`` of an entry is what OpInfo declares, unless all calls on the GPU say otherwise; ``together`` is the list
of ``devices.json`` with what the GPU said of each argument that lay on the host.  Operands of integers are left out:
what CUDA does not multiply is another question than precision.
"""

from __future__ import annotations

import argparse
import json
import lzma
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._apart import progress
from amplint.data._calls import Call, Target
from amplint.data._catalog import catalog
from amplint.data._entries import entry_of
from amplint.data._layers import calls_of, layer_classes, samples
from amplint.data._measure import measure
from amplint.data._policies import add_policies
from amplint.data._recorded import PLAIN, Key, Recorded, fails, said, with_record, written
from amplint.data._regimes import Measured, casts_by_device
from amplint.data.generate_policy import dump
from amplint.emulation import policies as policies_of
from amplint.emulation.gaps import SUPPORT, template

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYERS = "torch.nn."
LOW = ("float16", "bfloat16")
Outcomes = dict[int, dict[Key, Any]]
"""By number of the call."""


@dataclass
class Sides:
    """What the calls of one callable gave; ``apart``: by parameter, whether each raised where that lay on the host."""

    gpu: Outcomes = field(default_factory=dict)
    emulated: Outcomes = field(default_factory=dict)
    apart: dict[str, list[bool]] = field(default_factory=dict)


def read(path: Path) -> tuple[str, dict[str, Sides]]:
    """The release of torch of a record, and what it holds by callable."""
    found: dict[str, Sides] = {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        head = json.loads(next(file))
        for line in map(json.loads, file):
            sides = found.setdefault(line["name"], Sides())
            outcomes = sides.gpu if line["side"] == "gpu" else sides.emulated
            for number, region, operands, outcome in line["ran"]:
                outcomes.setdefault(number, {})[(region, operands)] = outcome
            sides.apart.update(line.get("apart", {}))
    return head["torch"].partition("+")[0], found


def otherwise(gpu: dict[Key, Any], emulated: dict[Key, Any]) -> dict[Key, Any]:
    """What a call of floating operands gave on the GPU that it did not give emulated, errors' texts aside."""
    floating = (key for key in gpu.keys() & emulated.keys() if "=int64" not in key[1])
    return {
        key: gpu[key]
        for key in floating
        if gpu[key] != emulated[key] and not (fails(gpu[key]) and fails(emulated[key]))
    }


def with_records(calls: list[Call], sides: Sides) -> list[Call]:
    """The calls, with what the GPU gave otherwise of those that this torch's CPU answers as that torch's did."""
    found: list[Call] = []
    for number, call in enumerate(calls):
        emulated = sides.emulated.get(number, {})
        there = otherwise(sides.gpu.get(number, {}), emulated)
        plain = with_record(call, {})
        found.append(with_record(call, there) if there and _answers(plain, emulated) else plain)
    return found


def _answers(call: Recorded, emulated: dict[Key, Any]) -> bool:
    """Whether a call gives here without autocast what it gave there; whatever its errors say."""
    operands = list(call.operands("floating"))
    alike = [dict.fromkeys(operands, dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16)]
    for dtypes in alike:
        there = emulated.get((PLAIN, written(dtypes)))
        here = said(call.run(dtypes))
        if there is None or (here != there and not (fails(here) and fails(there))):
            return False
    return True


def entries(calls: dict[str, list[Call]]) -> dict[str, Any]:
    """The entries of callables, by name; none for one whose result follows no rule."""
    measured: Measured = {name: [f for f in map(measure, found) if f is not None] for name, found in calls.items()}
    casts = {device: found for device, found in casts_by_device(measured).items() if device == "cuda"}
    history = {device: policies_of(device) for device in casts}
    table: dict[str, Any] = {}
    for name, facts in measured.items():
        entry = entry_of(Target(name), facts) if facts else None
        if entry is not None:
            add_policies(name, entry, {device: found[name] for device, found in casts.items()}, history)
            table[name] = entry
    return table


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The keys of an entry that differ, null where one is gone."""
    return {key: after.get(key) for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)}


def lacking(calls: Outcomes, said: list[str]) -> list[str]:
    """The low-precision dtypes that a callable has no kernel for, by its calls on the GPU.

    What a table says stays where some calls run and others are refused, or none is on record.
    """
    found = []
    for dtype in LOW:
        alike = [(_alike(there, "float32"), _alike(there, dtype)) for there in calls.values()]
        tried = [low for full, low in alike if low is not None and full is not None and not fails(full)]
        refused = [low for low in tried if fails(low) and SUPPORT.search(template(low))]
        if (len(refused) == len(tried) and tried) or (dtype in said and (any(map(fails, tried)) or not tried)):
            found.append(dtype)
    return found


def _alike(there: dict[Key, Any], dtype: str) -> Any:
    """What a call without autocast gave whose floating operands are all of one dtype; None where none is on record."""
    return next(
        (
            outcome
            for (region, operands), outcome in there.items()
            if region == PLAIN and operands and {one.rpartition("=")[2] for one in operands.split()} == {dtype}
        ),
        None,
    )


def _unsupported(recorded: dict[str, Sides]) -> Iterator[tuple[str, dict[str, Any]]]:
    """``unsupported`` of each operation for which all calls on the GPU say otherwise."""
    table = _table("ops.json")
    for name in sorted(recorded.keys() & table.keys()):
        unsupported = table[name].get("unsupported", {})
        lacks = lacking(recorded[name].gpu, unsupported.get("cuda", []))
        if lacks != unsupported.get("cuda", []):
            changed = {**unsupported, "cuda": lacks}
            yield name, {"unsupported": {device: found for device, found in changed.items() if found}}


def _together(recorded: dict[str, Sides]) -> Iterator[tuple[str, dict[str, Any]]]:
    """``together`` of each operation whose calls on the GPU say otherwise than those on fake tensors.

    What was not tried there stays.
    """
    before = _table("devices.json")
    for name, sides in sorted(recorded.items()):
        said = before.get(name, [])
        now = [*(p for p in said if all(sides.apart.get(p, ()))), *(p for p in sides.apart if p not in said)]
        now = [parameter for parameter in now if all(sides.apart.get(parameter, ()))]
        if now != said:
            yield name, {"together": now}


def _table(name: str) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text())["ops"]
    return entries


def generate(record: Path) -> dict[str, Any]:
    """The whole table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    release, recorded = read(record)
    differing = {
        name
        for name, sides in recorded.items()
        if any(otherwise(sides.gpu.get(number, {}), found) for number, found in sides.emulated.items())
    }
    progress(f"{len(differing)} of {len(recorded)} callables give something else on the GPU")
    targets, _ = catalog(differing.__contains__)
    calls = {name: target.calls for name, target in targets.items() if not target.attribute}
    for name, cls in layer_classes().items():
        if LAYERS + name in differing:
            calls[LAYERS + name] = calls_of(cls, samples(name))
    plain = entries(calls)
    there = entries({name: with_records(found, recorded[name]) for name, found in calls.items()})
    ops = {name: changes(plain[name], there[name]) for name in sorted(plain.keys() & there.keys())}
    for name, change in (*_unsupported(recorded), *_together(recorded)):
        ops.setdefault(name, {}).update(change)
    found = {name: change for name, change in ops.items() if change}
    progress(f"{len(found)} entries differ")
    return {"torch": release, "generator": "python -m amplint.data.generate_cuda", "ops": found}


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Measure what CUDA's kernels do to dtypes otherwise than the CPU's.")
    parser.add_argument("record", type=Path)
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).with_name("cuda.json"))
    options = parser.parse_args()
    dump(generate(options.record), options.out)


if __name__ == "__main__":
    main()
