"""The signatures of torch's mixed-precision API are those that torch has, and calls that they refuse raise."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch

import amplint.data
from amplint.data import generate_signatures
from amplint.infer.torch_model.signatures import measured_in, signatures

FILE = json.loads(Path(amplint.data.__file__).with_name("signatures.json").read_text())


@pytest.mark.skipif(torch.__version__.partition("+")[0] != FILE["torch"], reason="measured with another torch")
def test_the_table_is_torchs() -> None:
    assert {key: FILE[key] for key in ("signatures", "scaler")} == generate_signatures.table()


def test_the_release() -> None:
    assert ".".join(map(str, measured_in())) == FILE["torch"].rpartition(".")[0]


@pytest.mark.parametrize(
    ("name", "positional", "keywords", "why"),
    [
        ("torch.amp.autocast", ("cpu",), {"device": "cpu"}, "takes no argument `device`"),
        ("torch.amp.autocast", (), {"enabled": True}, "needs an argument `device_type`"),
        ("torch.amp.autocast", ("cpu",), {"device_type": "cpu"}, "gets `device_type` by position and by name"),
        ("torch.autocast", ("cpu", None, True, True, True), {}, "takes 4 arguments by position, not 5"),
        ("torch.amp.GradScaler", (), {"device_type": "cpu"}, "takes no argument `device_type`"),
        ("torch.cpu.amp.GradScaler", (), {"device": "cpu"}, "takes no argument `device`"),
        ("torch.amp.GradScaler", ("cpu", 2.0), {"enabled": False}, None),
        ("torch.autocast", ("cpu",), {"dtype": None}, None),
    ],
)
def test_what_is_refused_raises(
    name: str, positional: tuple[object, ...], keywords: dict[str, object], why: str | None
) -> None:
    assert signatures()[name].refusal(len(positional), keywords, unseen=False) == why
    called = torch
    for part in name.split(".")[1:]:
        called = getattr(called, part)
    if why is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            called(*positional, **keywords)
    else:
        with pytest.raises(TypeError):
            called(*positional, **keywords)


def test_arguments_that_are_not_seen_may_be_those_that_are_missing() -> None:
    assert signatures()["torch.autocast"].refusal(0, ("enabled",), unseen=True) is None
    assert signatures()["torch.autocast"].refusal(0, ("device",), unseen=True) is not None
