"""What an error or a result of a run is taken for, as torch raises it here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from amplint.infer.lattice.scenarios import find_scenario
from amplint.verify.forked import run_forked
from amplint.verify.job import CLEAN, CPU_GAP, HARDWARE, NO_REFERENCE, OVERFLOW, Outcome
from amplint.verify.judge import difference

HALF = find_scenario("autocast-fp16")
assert HALF is not None


class Module(nn.Module):
    def __init__(self, body: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.body = body

    def forward(self, x: torch.Tensor) -> Any:
        return self.body(self.layer(x))


def outcomes(body: Any, device: str = "cuda") -> tuple[Outcome, ...]:
    def example() -> Any:
        return Module(body), (torch.randn(2, 8),), {}

    return run_forked(example, (HALF,), device, __file__, timeout=60)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("cuda", "Stream"),
        ("cuda", "Event"),
        ("cuda", "CUDAGraph"),
        ("cuda", "current_stream"),
        ("cuda", "mem_get_info"),
        ("xpu", "Stream"),
        ("xpu", "current_stream"),
        ("mps", "current_allocated_memory"),
    ],
)
def test_what_needs_the_device_itself_is_hardware(device: str, name: str) -> None:
    def use(h: torch.Tensor) -> torch.Tensor:
        made = getattr(getattr(torch, device), name)()
        if name in ("Event", "CUDAGraph"):  # CUDA builds raise when it is used
            getattr(made, "record" if name == "Event" else "capture_begin")()
        return h

    assert {o.kind for o in outcomes(use, device)} == {HARDWARE}


def test_a_missing_package_is_not_the_hardwares_fault() -> None:
    def use(h: torch.Tensor) -> torch.Tensor:
        import no_such_package_anywhere

        return no_such_package_anywhere.run(h)

    found = outcomes(use)
    assert {o.kind for o in found} == {NO_REFERENCE}
    assert all("no_such_package_anywhere" in (o.error or "") for o in found)


def test_a_gap_of_the_cpu_is_told_apart() -> None:
    assert {o.kind for o in outcomes(lambda h: torch.fft.rfft(h).abs())} == {CPU_GAP}


def test_a_gradient_that_a_smaller_loss_saves_is_no_overflow() -> None:
    def large(h: torch.Tensor) -> torch.Tensor:
        return h.float() * 1e9

    assert {o.kind for o in outcomes(large)} == {CLEAN}


def test_a_gradient_that_is_nan_at_any_scale_is_an_overflow() -> None:
    def root(h: torch.Tensor) -> torch.Tensor:
        tiny = (h * 0 + 1e-9) if h.dtype is torch.float32 else h * 0
        return tiny.sqrt() * 0 + h

    kinds = {o.mode: o.kind for o in outcomes(root)}
    assert kinds == {"train": OVERFLOW, "eval": OVERFLOW, "eval-no-grad": CLEAN}


def test_other_random_numbers_are_no_loss() -> None:
    def sampled(h: torch.Tensor) -> torch.Tensor:
        return torch.randn(h.shape, dtype=h.dtype) + h

    assert {o.kind for o in outcomes(sampled)} == {CLEAN}


def test_the_numbers_that_masks_are_filled_with_are_no_loss() -> None:
    def filled(dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([1.0, -torch.finfo(dtype).max, -torch.finfo(dtype).max / 2], dtype=dtype)

    assert difference((filled(torch.float32),), (filled(torch.float16),)) == 0
    assert difference((torch.tensor([1.0, 60_000.0]),), (torch.tensor([1.0, 6.0]).half(),)) == pytest.approx(1, 0.01)
