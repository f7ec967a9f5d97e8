"""Generates ``complex_half.json``: which products have no kernel for complex32, what a transform of float16 gives.

Usage: ``python -m amplint.data.generate_complex_half [OUT]`` (some seconds; needs expecttest).

``ops`` are the operations of ``ops.json`` that autocast computes in 16 bit on cuda, that torch's own test declarations
(OpInfo) leave complex32 out of although they declare complex64, and for which the CPU says in a sample that it has no
kernel either. Declarations alone leave out what nobody tests, and the CPU lacks kernels that cuda has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.data import read_table
from amplint.data._catalog import op_db

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAMPLES = 20
_LOWER = "lower"


def operations() -> list[str]:
    """The qualified names, functions and methods."""
    known = read_table("ops.json")["ops"]
    variants: dict[str, list[Any]] = {}
    for op in op_db:
        variants.setdefault(op.name, []).append(op)
    found: list[str] = []
    for name, ops in sorted(variants.items()):
        entries = {f"torch.{of}{name}": known.get(f"torch.{of}{name}") for of in ("", "Tensor.")}
        products = [full for full, entry in entries.items() if entry and entry.get("policy", {}).get("cuda") == _LOWER]
        if products and _is_undeclared(ops) and any(map(_is_refused, ops)):
            found += products
    return found


def _is_undeclared(ops: list[Any]) -> bool:
    declared = set[torch.dtype]().union(*(op.supported_dtypes("cuda") for op in ops))
    return torch.complex64 in declared and torch.complex32 not in declared


def _is_refused(op: Any) -> bool:
    return any(itertools.islice(_refusals(op), _SAMPLES))


def _refusals(op: Any) -> Iterator[bool]:
    """Of each sample, whether the CPU lacks the kernel for it."""
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", torch.complex64):
        half = sample.transform(_halved)
        try:
            op.op(half.input, *half.args, **half.kwargs)
        except (RuntimeError, TypeError, ValueError) as error:
            yield "not implemented for 'ComplexHalf'" in str(error)
        else:
            yield False


def _halved(value: Any) -> Any:
    complex_one = isinstance(value, torch.Tensor) and value.dtype is torch.complex64
    return value.to(torch.complex32) if complex_one else value


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Collect which products lack complex32.")
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).with_name("complex_half.json"))
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    version = torch.__version__.partition("+")[0]
    table = {"torch": version, "generator": "python -m amplint.data.generate_complex_half", "ops": operations()}
    out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
