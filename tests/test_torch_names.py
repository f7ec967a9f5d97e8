"""What torch's modules do not hold is known where the table was read, and torch itself agrees."""

from __future__ import annotations

import importlib

import pytest

from amplint.config import NEWEST_TORCH
from amplint.infer.torch_model import torch_names
from amplint.infer.torch_model.torch_names import missing, only_raises, refuses

torch = pytest.importorskip("torch")

HERE = tuple(int(part) for part in torch.__version__.split(".")[:2])


@pytest.mark.parametrize("module", sorted(torch_names._read()["modules"]))
def test_torch_has_what_the_table_holds(module: str) -> None:
    held = torch_names._held(module)
    here = importlib.import_module(module)
    assert held is not None
    assert [name for name in dir(here) if name[0] != "_" and missing(f"{module}.{name}", HERE)] == []
    lacking = [name for name in held if missing(f"{module}.{name}", HERE) is not None]
    assert [name for name in lacking if hasattr(here, name)] == []


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        ("torch.rfft", NEWEST_TORCH, "rfft"),
        ("torch.fft.rfft", NEWEST_TORCH, None),
        ("torch.amp.GradScaler", (2, 0), "GradScaler"),
        ("torch.amp.GradScaler", (2, 1), "GradScaler"),
        ("torch.amp.GradScaler", (2, 3), None),
        ("torch.amp.GradScaler", NEWEST_TORCH, None),
        ("torch._six", NEWEST_TORCH, "_six"),
        ("torch._unheard_of", NEWEST_TORCH, None),
        ("torch.board.synchronize", NEWEST_TORCH, None),
        ("torch.Tensor.unheard_of", NEWEST_TORCH, None),
        ("torch.ops.own.unheard_of", NEWEST_TORCH, None),
        ("torch.nn.functional.unheard_of", NEWEST_TORCH, "unheard_of"),
        ("torch.rfft", (1, 0), None),
    ],
)
def test_what_a_release_lacks(name: str, release: tuple[int, int], expected: str | None) -> None:
    assert missing(name, release) == expected


def test_the_newest_release_was_read() -> None:
    assert NEWEST_TORCH in torch_names._releases()


def test_what_only_raises_is_there_and_raises() -> None:
    names = torch_names._removed()["raising"]
    assert only_raises("torch.symeig", NEWEST_TORCH)
    assert not only_raises("torch.symeig", (1, 13))
    assert not only_raises("torch.svd", NEWEST_TORCH)
    for name in names:
        module, _, attribute = name.rpartition(".")
        with pytest.raises((RuntimeError, ValueError)):
            getattr(importlib.import_module(module), attribute)(torch.eye(2), torch.eye(2))


def test_a_keyword_that_is_not_taken_raises() -> None:
    weights = [torch.nn.Parameter(torch.zeros(1))]
    schedulers = torch_names._removed()["parameters"]
    assert {"torch.optim.SGD", "torch.optim.lr_scheduler.StepLR"} <= schedulers.keys()
    for name in schedulers:
        assert refuses(name, ["verbose"], NEWEST_TORCH)
        module, _, attribute = name.rpartition(".")
        with pytest.raises(TypeError, match="unexpected keyword argument 'verbose'"):
            getattr(importlib.import_module(module), attribute)(torch.optim.SGD(weights), verbose=True)
    assert not refuses("torch.optim.lr_scheduler.StepLR", ["verbose"], (2, 2))
    assert not refuses("torch.optim.lr_scheduler.StepLR", ["gamma"], NEWEST_TORCH)
    assert not refuses("torch.nn.Linear", ["verbose"], NEWEST_TORCH)
