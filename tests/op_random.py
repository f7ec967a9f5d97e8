"""Random calls of operations of the table, in torch and as a program for the inference.

``python tests/op_random.py`` draws calls under CUDA's policy (emulated, so in a process of its own) and ends with
status 1 on the first about which the inference is wrong.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL
from amplint.infer.torch_model.torch_ops import Op, find_op, names
from amplint.source import Source

DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "bool", "complex64")
SHAPES = ((), (2,), (2, 2))
NOT_CALLED = {"torch.Tensor.backward", "torch.Tensor.set_", "torch.Tensor.resize_as_", "torch.Tensor.module_load"}
#: The other 16-bit dtype in a region of one is the case that policies were not written for.
REGIONS = {"": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Tensor(NamedTuple):
    """An operand."""

    dtype: str
    shape: tuple[int, ...]


class Random(NamedTuple):
    """A call: operands in the order of the parameters, and the dtype of the autocast region around it, if any."""

    name: str
    operands: tuple[Tensor, ...]
    region: str


def plain_operations() -> list[Op]:
    """Operations that take nothing but up to three tensors."""
    found = []
    for name in names():
        op = find_op(name)
        assert op is not None
        taken = op.tensors == op.params[: len(op.tensors)] and 1 <= len(op.tensors) <= 3
        if taken and not op.attribute and name not in NOT_CALLED and not any(slot.listed for slot in op.slots):
            found.append(op)
    return found


OPERATIONS = plain_operations()


@st.composite
def calls(draw: Any) -> Random:
    op = draw(st.sampled_from(OPERATIONS))
    operands = tuple(Tensor(draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))) for _ in op.tensors)
    return Random(op.name, operands, draw(st.sampled_from(sorted(REGIONS))))


def observed(call: Random, device: str) -> str | None:
    """The dtype of the result; None where torch raises or gives no tensor."""
    function: Any = torch
    for part in call.name.split(".")[1:]:
        function = getattr(function, part)
    tensors = [torch.ones(t.shape, dtype=getattr(torch, t.dtype)) for t in call.operands]
    region = REGIONS[call.region]
    try:
        with torch.autocast(device, dtype=region, enabled=region is not None):
            out = function(*tensors)
    except Exception:
        return None
    return str(out.dtype)[6:] if isinstance(out, torch.Tensor) else None


def program(call: Random, device: str) -> str:
    arguments = [f'torch.ones({t.shape}, dtype=torch.{t.dtype}, device="{device}")' for t in call.operands]
    enabled = f'"{device}", dtype=torch.{call.region}' if call.region else f'"{device}", enabled=False'
    return f"import torch\nwith torch.autocast({enabled}):\n    result = {call.name}({', '.join(arguments)})\n"


def inferred(call: Random, device: str) -> tuple[str, ...] | None:
    """The dtypes that the result may have; None where that is not known."""
    source = program(call, device)
    wanted = source.splitlines()[-1].index(call.name) + 1
    found = file_dtypes(
        Source(Path("/random/call.py"), source.encode()), scenarios=(CONTROL,), device=device, torch_version=(2, 13)
    )
    rows = [row for row in found.rows if row.span.start.row == 3 and row.span.start.column == wanted]
    widest = max(rows, key=lambda row: row.span.end.column, default=None)
    return widest.dtypes[0] if widest is not None else None


def check(call: Random, device: str) -> None:
    """Fails where torch gives another dtype than the inference allows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = observed(call, device)
    said = inferred(call, device) if truth is not None else None
    assert said is None or truth in said, f"{program(call, device)}gives {truth}, inferred {said}"


def main() -> int:
    from amplint.emulation import emulated

    count = int(sys.argv[1])

    @settings(max_examples=count, deadline=None, derandomize=True, database=None)
    @given(calls())
    def under_cuda(call: Random) -> None:
        check(call, "cuda")

    with emulated("cuda"):
        under_cuda()
    return 0


if __name__ == "__main__":
    sys.exit(main())
