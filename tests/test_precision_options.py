"""What names a dtype, and what does not: an option is for whoever runs a model to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP102", "AMP103", "AMP104"), (), ())

CODE = """\
import torch
from torch import nn

DTYPES = {{"fp32": torch.float32, "fp16": torch.float16}}


class Net(nn.Module):
    dtypes = {{"fp32": torch.float32, "fp16": torch.float16}}
    one = {{"fp32": torch.float32}}

    def __init__(self, precision="fp32"):
        super().__init__()
        self.dtype = {chosen}
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x.to(self.dtype))
"""
CHOSEN = ["DTYPES[precision]", "self.dtypes[precision]", "DTYPES.get(precision, torch.float32)"]


def scenarios(folder: Path, code: str) -> set[str]:
    found = check_file(Source(folder / "net.py", code.encode()), Options(RULES)).findings
    return {scenario for finding in found for scenario in finding.scenarios}


def told(folder: Path, chosen: str) -> bool:
    return bool(scenarios(folder, CODE.format(chosen=chosen)))


@pytest.mark.parametrize("chosen", CHOSEN)
def test_an_option_that_names_a_dtype_is_given_with_it(chosen: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(CODE.format(chosen=chosen), "net.py", "exec"), names)
    assert names["Net"]("fp16").half()(torch.ones(2, 4)).dtype is torch.float16
    assert not told(tmp_path, chosen)


@pytest.mark.parametrize("chosen", ["torch.float32", "DTYPES['fp32']", "self.one.get(precision, torch.float32)"])
def test_a_fixed_dtype_is_told(chosen: str, tmp_path: Path) -> None:
    assert told(tmp_path, chosen)


OLD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.table = nn.Parameter(torch.Tensor(4, 4))

    def forward(self, x):
        return torch.mm(self.layer(x), self.table)
"""


def test_a_tensor_of_no_dtype_has_the_default_one(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.Tensor(4, 4).dtype is torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)
    assert scenarios(tmp_path, OLD) == set()
