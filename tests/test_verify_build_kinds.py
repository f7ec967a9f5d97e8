"""The numbers that inputs hold, positions in other inputs, and what the forward says of the constructor's arguments."""

from __future__ import annotations

import multiprocessing
import time

import pytest
import torch
from build_harness import built, recipe_of
from torch import nn

from amplint.infer.lattice.scenarios import find_scenario
from amplint.verify.build.trace import Trace
from amplint.verify.cell import evaluate, plan
from amplint.verify.job import CLEAN, OTHER, OVERFLOW, Job
from amplint.verify.run import Where


class Rotates(nn.Module):
    """Multiplies complex numbers by complex weights, in two inputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(x @ self.weight + state @ self.weight)


class Parts(nn.Module):
    """A real layer on each part of a complex input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.is_complex(), "complex expected"
        return self.layer(x.real) + self.layer(x.imag)


class Likelihood(nn.Module):
    """Wants numbers between 0 and 1 and says so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.min() < 0 or x.max() > 1:
            raise ValueError("all elements of input should be between 0 and 1")
        return torch.log(x + 1)


class Soft(nn.Module):
    """A loss whose labels are floats."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.binary_cross_entropy_with_logits(logits.flatten(), labels.flatten())


class Pairs(nn.Module):
    """Takes rows of one input at the positions that two others name."""

    def forward(self, rows: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return rows[first] - rows[second]


class Blank(nn.Module):
    """Inverts a mask."""

    def forward(self, x: torch.Tensor, blank: torch.Tensor) -> torch.Tensor:
        assert blank.dtype is not torch.float32 or (~blank).any()
        return x * (~blank).float().sum()


class Static(nn.Module):
    """Has a forward without self."""

    @staticmethod
    def forward(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale


class Scatters(nn.Module):
    """Writes to a new tensor, through a view of it."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(x.shape[0], 64)
        y[:, :4] += x.flatten(1)[:, :4]
        return y


class Resizes(nn.Module):
    """Needs one of two options, and says which only when it runs."""

    def __init__(self, size: int | None = None, scale: float | None = None) -> None:
        super().__init__()
        self.size, self.scale = size, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.size is None and self.scale is None:
            raise ValueError("either size or scale must be given")
        return x * 2


class Calls(nn.Module):
    """Calls what its constructor was given."""

    def __init__(self, extra) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.extra = extra

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.extra(x)
        return y


class Unset(nn.Module):
    """Annotates what it needs as an int and leaves it None."""

    def __init__(self, size: int = None, patch: int = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
        super().__init__()
        self.layer = nn.Linear(size // patch, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


class Grid(nn.Module):
    """Counts up to its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, i, j) -> torch.Tensor:  # type: ignore[no-untyped-def]
        y: torch.Tensor = self.table(torch.arange(j - i, j))
        return y


class Fetches(nn.Module):
    """Fetches weights unless told not to."""

    def __init__(self, pretrained: bool = True) -> None:
        super().__init__()
        if pretrained:
            raise OSError("no network")
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


@pytest.mark.parametrize(
    "target", [Rotates, Parts, Likelihood, Soft, Pairs, Blank, Static, Scatters, Resizes, Calls, Fetches, Unset, Grid]
)
def test_a_class_is_built_by_what_it_says_and_does(target: type[nn.Module]) -> None:
    assert built(target).how == "made from its signature and layers"


def test_positions_are_whole_numbers_below_the_size() -> None:
    rows, first, second = built(Pairs).args
    assert first.dtype is second.dtype is torch.int64
    assert first.shape == second.shape
    assert int(max(first.max(), second.max())) < rows.shape[0]


def test_what_is_written_through_a_view_is_traced() -> None:
    x = torch.ones(2)
    with torch.no_grad(), Trace({"x": x}, []) as trace:
        y = torch.zeros(4)
        y[:2] += x
    assert trace.origins(y) == {"x"}


def _kind(target: type[nn.Module], scenario: str, mode: str = "eval") -> tuple[str, str, float]:
    """What comes of a cell, its inputs and CPU seconds: in a process of its own, which keeps cuda's policy."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_evaluated, (target, scenario, mode))


def _evaluated(target: type[nn.Module], scenario: str, mode: str) -> tuple[str, str, float]:
    torch.set_num_threads(1)
    recipe, where = recipe_of(target), Where("cuda", "cpu")
    asked = find_scenario(scenario)
    assert asked is not None
    job = Job(__file__, target.__name__, "cuda", "cpu", (scenario,), "", "")
    with where.policy():
        planned = plan(recipe, recipe.make(), mode, where)
        assert planned is not None
        start = time.process_time()
        outcome = evaluate(job, recipe, asked, planned, where, None)[0]
    return outcome.kind, outcome.inputs, time.process_time() - start


def test_complex_inputs_are_as_narrow_as_the_weights() -> None:
    kind, inputs, _ = _kind(Parts, "fp16")
    assert kind == CLEAN
    assert "complex32" in inputs


def test_a_failure_of_complex_inputs_beside_bfloat16_is_not_confirmed() -> None:
    assert _kind(Parts, "bf16")[0] == OTHER


class Narrow(nn.Module):
    """Has wide convolutions, which take the CPU seconds to differentiate in float16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1024, 256, (1, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


def test_convolutions_in_float16_are_differentiated_fast() -> None:
    kind, _, seconds = _kind(Narrow, "fp16", "train")
    assert kind == CLEAN
    assert seconds < 3


class Deep(nn.Module):
    """Adds to what it has so often that untrained statistics let it grow beyond float16 in eval mode only."""

    def __init__(self, growth: float = 1.0) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(8) for _ in range(24))
        self.growth = growth

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm in self.norms:
            x = x + norm(x)
        return x * self.growth


class Grows(Deep):
    """Is too large for float16 in any mode."""

    def __init__(self) -> None:
        super().__init__(growth=1e5)


def test_growth_by_untrained_statistics_is_no_overflow() -> None:
    assert _kind(Deep, "fp16")[0] == OTHER
    assert _kind(Grows, "fp16")[0] == OVERFLOW
