"""What has dimensions whatever it is computed from promotes as a tensor that has some."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_dtype_rows_objects import dtypes_of

if TYPE_CHECKING:
    from pathlib import Path

from amplint.infer.torch_model.results import _DIMENSIONS
from amplint.infer.torch_model.torch_ops import find_op, names

torch = pytest.importorskip("torch")

PROGRAM = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        narrow = torch.ones(2, dtype=torch.float16)
        wide = x.float().sum(-1)
        return {} * narrow
"""
KNOWN = (
    *("wide.unsqueeze(-1)", "torch.unsqueeze(wide, 0)", "wide.repeat(2)", "wide.repeat_interleave(2)"),
    *("wide.unfold(0, 1, 1)", "torch.atleast_1d(wide)", "wide.diag_embed()", "wide.transpose(1, 0)"),
    *("wide.permute(1, 0)", "wide.split(2, 0)[0]", "wide.narrow(0, 0, 2)", "torch.tril(wide)", "wide.cumsum(1)"),
    *("wide.mm(wide)", "torch.meshgrid(wide, wide)[0]", "wide.flip(1)", "wide.softmax(dim=1)"),
)
UNKNOWN = ("wide", "wide.T", "wide.softmax(dim=-1)", "wide.squeeze(-1)", "wide.cumsum(0)", "wide.clamp(min=1)")


@pytest.mark.parametrize("expression", KNOWN)
def test_with_dimensions_it_is_as_wide(tmp_path: Path, expression: str) -> None:
    found = dtypes_of(tmp_path, PROGRAM.format(expression), f"{expression} * narrow", "fp16")
    assert found == ("float32",)
    kept = 0
    narrow = torch.ones(2, dtype=torch.float16)
    for shape in ((), (2,), (2, 2)):
        try:
            result = eval(expression, {"torch": torch, "wide": torch.ones(shape)}) * narrow
        except (RuntimeError, IndexError):
            continue
        kept += 1
        assert result.dtype is torch.float32
    assert kept


@pytest.mark.parametrize("expression", UNKNOWN)
@pytest.mark.filterwarnings("ignore:Tensor.T is deprecated")
def test_what_may_have_none_is_not_known(tmp_path: Path, expression: str) -> None:
    assert dtypes_of(tmp_path, PROGRAM.format(expression), f"{expression} * narrow", "fp16") is None
    result = eval(expression, {"wide": torch.tensor(1.0)}) * torch.ones(2, dtype=torch.float16)
    assert result.dtype is torch.float16


@pytest.mark.filterwarnings("ignore")
def test_torch_refuses_a_second_dimension_of_what_has_none() -> None:
    """Whatever is called of what keeps dimensions: a tensor of none or one has no dimension 1, or gets it."""
    from amplint.data._calls import Failure, tensors_in
    from amplint.data._catalog import catalog
    from amplint.data._dimensions import _Reduced

    keeping = [name for name in sorted(names()) if (op := find_op(name)) is not None and op.keeps_dims]
    drawn = {*random.Random(11).sample(keeping, 120), "torch.Tensor.transpose", "torch.tensordot"}
    targets, _ = catalog(drawn.__contains__)
    kept = 0
    for name, target in targets.items():
        op = find_op(name)
        assert op is not None
        for call in target.calls:
            given = dict(call.named()).keys() & {n for n in _DIMENSIONS if n != "dims" or len(op.tensors) == 1}
            for param, shape, named in ((p, s, v) for p in given for s in ((), (1,)) for v in (1, -2, (0, 1))):
                few = _Reduced(shape, None, "kept", False)
                again = replace(
                    call,
                    args=tuple(map(few.of, call.args)),
                    kwargs={key: few.of(value) for key, value in call.kwargs.items()},
                ).with_argument(param, named)
                _, out = again.output({})
                kept += 1
                assert isinstance(out, Failure) or all(tensor.dim() for tensor in tensors_in(out)), (name, param, shape)
    assert kept > 200
