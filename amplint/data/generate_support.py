"""Generates ``low_precision_support.json``: which operations lack float16 or bfloat16, on cuda and on the CPU.

Usage: ``python -m amplint.data.generate_support [OUT]`` (a minute or two; needs expecttest).

``ops`` holds what torch's own test declarations (OpInfo) leave out of an operation that they declare for float32:
device -> ``forward`` or ``backward`` -> dtypes.  Gates on GPU generations count as passed: the table is about a recent
GPU.  A declaration is what torch tests, not proof; an operation with several variants lacks what all of them lack.

``refusals`` joins that with what CPU kernels say.  OpInfo's samples run on the CPU in each dtype that the CPU is
declared to lack, forward and backward; every error is kept with its text (dtypes, numbers and shapes replaced), the
ATen operation that raised it, if one was reached, and the declared operations that ran into it: ``has`` are those whose
dtype cuda is declared to have, ``lacks`` the others.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._catalog import LOW, op_db
from amplint.data._refusals import Reached, converted
from amplint.emulation.gaps import template

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = ("cuda", "cpu")
DIRECTIONS = ("forward", "backward")
#: Operands that disagree, which some samples bring about only because not all of their arguments are converted.
_MISMATCH = re.compile(r"same dtype|expected scalar type")
READ_SAMPLES, LARGEST = 60, 100_000
Lacking = dict[str, dict[str, list[str]]]


def _declared(op: Any, device: str, direction: str) -> set[torch.dtype]:
    if direction == "forward":
        return set(op.supported_dtypes(device))
    return set(op.supported_backward_dtypes(device)) if op.supports_autograd else set()


def _lacks(ops: list[Any], device: str, direction: str) -> list[str]:
    """Low-precision dtypes that no variant has, if any has float32."""
    declared = set().union(*[_declared(op, device, direction) for op in ops])
    return [name for dtype, name in LOW.items() if torch.float32 in declared and dtype not in declared]


def operations() -> dict[str, Lacking]:
    """What each operation lacks, by OpInfo's name."""
    variants: dict[str, list[Any]] = {}
    for op in op_db:
        variants.setdefault(op.name, []).append(op)
    table: dict[str, Lacking] = {}
    for name, ops in sorted(variants.items()):
        found = {d: {way: names for way in DIRECTIONS if (names := _lacks(ops, d, way))} for d in DEVICES}
        table[name] = {device: ways for device, ways in found.items() if ways}
    return table


def _refused(op: Any, dtype: torch.dtype) -> Iterator[tuple[str, str, str | None]]:
    """(direction, text, ATen operation) of each error that the samples run into on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        samples = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
        for sample in itertools.islice(samples, READ_SAMPLES):
            if isinstance(sample.input, torch.Tensor) and sample.input.numel() > LARGEST:
                continue
            direction = "forward"
            with Reached() as reached:
                try:
                    kwargs = {name: converted(value, dtype) for name, value in sample.kwargs.items()}
                    out = op.op(converted(sample.input, dtype), *converted(list(sample.args), dtype), **kwargs)
                    direction = "backward"
                    _differentiate(out)
                except (RuntimeError, TypeError, ValueError) as error:
                    yield direction, str(error), reached.raised_in


def _differentiate(out: Any) -> None:
    outputs = out if isinstance(out, (tuple, list)) else [out]
    differentiable = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    if differentiable:
        torch.autograd.backward(torch.stack([t.abs().sum().float() for t in differentiable]).sum())


def refusals() -> list[dict[str, Any]]:
    """Errors of CPU kernels with the declared operations that ran into them."""
    found: dict[tuple[str, str | None, str], dict[str, set[str]]] = {}
    for op in op_db:
        for dtype, name in LOW.items():
            gaps = {d for d in DIRECTIONS if torch.float32 in _declared(op, "cpu", d)}
            gaps = {d for d in gaps if dtype not in _declared(op, "cpu", d)}
            if not gaps:
                continue
            for direction, text, raised_in in _refused(op, dtype):
                if direction in gaps and not _MISMATCH.search(text):
                    has = dtype in _declared(op, "cuda", direction)
                    users = found.setdefault((template(text), raised_in, name), {"has": set(), "lacks": set()})
                    users["has" if has else "lacks"].add(op.full_name)
    return [
        {"text": text, "op": op, "dtype": dtype, **{key: sorted(names) for key, names in users.items() if names}}
        for (text, op, dtype), users in sorted(found.items(), key=lambda item: tuple(map(str, item[0])))
    ]


def _write(path: Path) -> None:
    """One operation and one refusal a line, so that differences can be read."""
    head = {"torch": torch.__version__.partition("+")[0], "generator": "python -m amplint.data.generate_support"}
    top = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    ops = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in operations().items())
    rows = ",\n".join(f"  {json.dumps(row)}" for row in refusals())
    path.write_text("{\n" + top + ' "ops": {\n' + ops + '\n },\n "refusals": [\n' + rows + "\n ]\n}\n")


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Collect which operations lack float16 or bfloat16.")
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).with_name("low_precision_support.json"))
    torch.set_num_threads(1)
    _write(parser.parse_args().out)


if __name__ == "__main__":
    main()
