"""A layer that is put around another one: what is made beside it, where the dtypes of construction are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.source import Source

AROUND = """\
import torch
from torch import nn


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, 4)

    def forward(self, x: torch.Tensor):
        return self.inner(x) + self.down(x)


class Net(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.layer = Around({inner})

    def forward(self, x: torch.Tensor):
        return self.layer(x)
"""


@pytest.mark.parametrize(("inner", "rows"), [("model.head", [12]), ("nn.Linear(8, 4)", [])])
def test_what_is_made_beside_a_layer_of_the_program_has_its_dtype(inner: str, rows: list[int]) -> None:
    assert raising(AROUND.format(inner=inner)) == rows


SIZED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.given = given
        self.down = nn.Linear(given.{size}, 4)

    def forward(self, x: torch.Tensor):
        return self.down({used})
"""


CALLED = "x) + self.given(x.long()).sum("


@pytest.mark.parametrize(("used", "rows"), [(CALLED, [12]), ("x", []), ("x + self.given.shift", [])])
def test_what_has_sizes_and_is_never_called_is_no_layer(used: str, rows: list[int]) -> None:
    assert raising(SIZED.format(used=used, size="in_features")) == rows


@pytest.mark.parametrize("size", ["embedding_dim", "num_embeddings"])
def test_a_model_may_be_given_its_embedding(size: str) -> None:
    assert raising(SIZED.format(used=CALLED, size=size)) == []


def raising(code: str) -> list[int]:
    source = Source(Path("/project/net.py"), code.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    found = [conflict for conflict in conflicts(facts) if conflict.raises]
    return [facts.span(conflict.node).start.row for conflict in found]
