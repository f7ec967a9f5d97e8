"""A tensor that is cast for one module and handed to another, whatever statement calls that."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP104")
CODE = """\
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, adapter):
        super().__init__()
        self.base, self.adapter, self.own = base, adapter, nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        if self.training:
            {plain}
        adapter = self.adapter
        x = x.to(adapter.weight.dtype)
        x = adapter(x)
        {cast}
        return result
"""
CALLS = ("result = self.base(x)", "result: torch.Tensor = self.base(x)", "result = [self.base(x)]")


@pytest.mark.parametrize("plain", ["return self.base(x)", *CALLS])
@pytest.mark.parametrize("cast", CALLS)
def test_a_cast_for_another_module_is_followed_to_any_statement(plain: str, cast: str) -> None:
    source = Source(Path("/project/adapted.py"), CODE.format(plain=plain, cast=cast).encode())
    assert [finding.span.start.row for finding in check_file(source, Options(RULES)).findings] == [16]
