"""Modules are built in sizes that matter: several of what could be one, an odd length, oblong images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from build_harness import built
from test_verify_cli import rows_of, write
from torch import nn

if TYPE_CHECKING:
    from pathlib import Path


class Heads(nn.Module):
    def __init__(self, dim: int, heads: int = 1, num_codebooks: int = 1, stride: int = 1, dim_index: int = 1) -> None:
        super().__init__()
        self.heads, self.num_codebooks, self.stride, self.dim_index = heads, num_codebooks, stride, dim_index
        self.project = nn.Linear(dim, dim * heads * num_codebooks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(x)


class SingleHead(Heads):
    """Demands one head; what else it counts may be more."""

    def __init__(self, dim: int, heads: int = 1, num_codebooks: int = 1) -> None:
        super().__init__(dim, heads, num_codebooks)
        if heads > 1:
            raise NotImplementedError("one head only")


class Levels(nn.Module):
    def __init__(self, levels: list[int]) -> None:
        super().__init__()
        self.levels = nn.Parameter(torch.tensor(levels).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * self.levels


class Compares(nn.Module):
    """Compares a width with one, which is no width to build it with."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim) if dim > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(x)


def test_what_a_module_counts_is_more_than_one() -> None:
    module = built(Heads).module
    assert isinstance(module, Heads)
    assert min(module.heads, module.num_codebooks) > 1
    assert module.heads != module.num_codebooks
    assert (module.stride, module.dim_index) == (1, 1)


def test_one_stays_where_the_module_demands_it() -> None:
    module = built(SingleHead).module
    assert isinstance(module, SingleHead)
    assert module.heads == 1
    assert module.num_codebooks > 1


@pytest.mark.parametrize("target", [Levels, Compares])
def test_no_dimension_of_an_input_is_one(target: type) -> None:
    made = built(target)
    assert min(made.args[0].shape) > 1


class OneAtATime(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[0] == 1
        return self.project(x)


class Windows(nn.Module):
    """Takes squares only, in windows of four."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[-1] == x.shape[-2]
        assert x.shape[-1] % 4 == 0
        return self.conv(x)


class Even(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(x.view(x.shape[0], -1, 2, x.shape[-1]))


def test_a_length_is_odd_and_an_image_is_oblong_where_that_goes() -> None:
    batch, length, width = built(Heads).args[0].shape
    assert length % 2 == 1
    assert len({batch, length, width}) == 3
    height, width = built(nn.Conv2d).args[0].shape[-2:]
    assert height != width
    assert built(Even).args[0].shape[1] % 2 == 0
    height, width = built(Windows).args[0].shape[-2:]
    assert height == width
    assert built(OneAtATime).args[0].shape[0] == 1


EINSUM = """\
class Scores(nn.Module):
    def __init__(self, dim: int, bits: int = 1):
        super().__init__()
        self.proj = nn.Linear(dim, bits)
        self.scale = torch.linspace(1, 2, bits)

    def forward(self, x):
        return torch.einsum("bnc,c->bn", self.proj(x), self.scale)
"""


def test_an_error_that_a_size_of_one_hides_is_confirmed(tmp_path: Path) -> None:
    """With one bit the einsum multiplies and promotes; with two it calls a kernel, which raises."""
    low, wide = torch.ones(2, 3, 1, dtype=torch.bfloat16), torch.ones(1)
    assert torch.einsum("bnc,c->bn", low, wide).shape == (2, 3)
    with pytest.raises(RuntimeError, match="BFloat16 but found Float"):
        torch.einsum("bnc,c->bn", low.expand(2, 3, 2), wide.expand(2))
    rows = rows_of(
        "scores.py::Scores", "--scenario", "bf16", "--isolated", cwd=write(tmp_path, scores=EINSUM), status=1
    )
    assert {row["verdict"] for row in rows} == {"confirmed"}
    assert {row["built"] for row in rows} == {"Scores(dim=32, bits=2)"}
