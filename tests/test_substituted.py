"""What raises in a ``try`` is merely possible where a handler computes the same in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP305")

FILE = """\
import torch
from torch import nn


def dumped(tensor):
    try:
        data = tensor.detach().cpu().numpy()
    {handler}
    return data.tobytes()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return dumped(self.proj.weight), self.proj(x)
"""
SUBSTITUTES = (
    "except TypeError:\n        data = tensor.detach().float().cpu().numpy()",
    "except (RuntimeError, TypeError) as error:\n        text = str(tensor.tolist())\n        return hash(text)",
    "except Exception:\n        print('slower')\n        return str(tensor.tolist()).encode()",
)
NONE = (
    "except TypeError:\n        raise ValueError('no such dtype') from None",
    "except ValueError:\n        data = tensor.detach().float().cpu().numpy()",
    "except Exception:\n        return None",
    "except Exception as error:\n        return {'error': str(error)}",
    "except Exception as error:\n        other = tensor.float()\n        return 'failed'",
    "finally:\n        print(tensor.shape)",
)


def doubts(tmp_path: Path, handler: str) -> list[str]:
    source = Source(tmp_path / "net.py", FILE.format(handler=handler).encode())
    (found,) = check_file(source, Options(RULES, pedantic=True)).findings
    assert found.span.start.row == 7
    return [held.doubt.name for held in found.doubts]


@pytest.mark.parametrize("handler", SUBSTITUTES)
def test_another_way_leaves_a_failure_possible(tmp_path: Path, handler: str) -> None:
    assert "substituted" in doubts(tmp_path, handler)


@pytest.mark.parametrize("handler", NONE)
def test_what_only_reports_the_failure_hides_nothing(tmp_path: Path, handler: str) -> None:
    assert "substituted" not in doubts(tmp_path, handler)


@pytest.mark.parametrize("handler", SUBSTITUTES)
def test_torch_goes_the_other_way(handler: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(FILE.format(handler=handler), "net.py", "exec"), names)
    net = names["Net"]().to(torch.bfloat16)
    data, _ = net(torch.ones(2, 4, dtype=torch.bfloat16))
    assert data
