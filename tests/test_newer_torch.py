"""What the tables know of releases of torch newer than the one that they were measured on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, amplint

from amplint.config import NEWEST_TORCH, OLDEST_TORCH
from amplint.data.generate_newer import changes
from amplint.data.newer import changed_names, entry_in
from amplint.emulation import policies
from amplint.infer.torch_model.torch_ops import find_op, measured_release

if TYPE_CHECKING:
    from pathlib import Path

DATA = ROOT / "amplint" / "data"
TABLES = ("autocast_policy", "low_precision_support", "ops", "layers")
OLD, NEW = "2.13", "2.14"


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return document


def release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def test_the_known_releases_are_those_of_the_tables() -> None:
    newer, history = read("newer"), read("policy_history")
    assert {read(table)["torch"] for table in TABLES} == {newer["base"]}
    assert release(newer["releases"][-1]) == NEWEST_TORCH == release(history["releases"][-1])
    assert release(history["releases"][0]) == OLDEST_TORCH


def test_every_change_changes_something() -> None:
    newer = read("newer")
    for table in TABLES:
        base = read(table)["ops"]
        for name, steps in newer["tables"][table].items():
            before = base.get(name)
            for step in steps:
                after = entry_in(release(step), table, name, base.get(name))  # type: ignore[arg-type]
                assert after != before, (table, name)
                before = after
            assert entry_in(measured_release(), table, name, base.get(name)) == base.get(name)


def test_layers_are_looked_up_without_a_release() -> None:
    assert not changed_names("layers"), "find_layer has to ask for the release, as find_op does"


def test_policies_that_came_and_went() -> None:
    assert policies("cuda", (2, 14))["linalg_matrix_sqrth"]["policy"] == "fp32"
    assert "linalg_matrix_sqrth" not in policies("cuda", (2, 13))
    assert {"qr", "cholesky"} <= policies("cpu", (2, 13)).keys()
    assert not {"qr", "cholesky"} & policies("cpu", (2, 14)).keys()


def codes(*arguments: str) -> list[tuple[str, str]]:
    done = amplint("check", "model.py", "--output-format", "json", *arguments)
    return [(finding["code"], finding["message"]) for finding in json.loads(done.stdout)]


SPECTRUM = """import torch
from torch import nn


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return torch.{operation}(self.proj(x))
"""


@pytest.mark.parametrize("operation", ["fft.rfft", "angle"])
def test_kernels_that_came(project: Path, operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "model.py").write_text(SPECTRUM.format(operation=operation))
    select = ("--select", "AMP305", "--scenario", "bf16")
    ((code, message),) = codes(*select, "--torch-version", OLD)
    assert code == "AMP305"
    assert "has no kernel for bfloat16" in message
    assert not codes(*select, "--torch-version", NEW)
    assert not codes(*select)
    older = project / "older"
    older.mkdir()
    (older / "requirements.txt").write_text("torch>=2.13\n")
    (project / "model.py").rename(older / "model.py")
    monkeypatch.chdir(older)
    ((code, message),) = codes(*select, "--pedantic")
    assert code == "AMP305"
    assert "in torch 2.13" in message


def test_operations_have_a_history() -> None:
    op = find_op("torch.angle", (2, 15))
    assert op is not None
    assert not op.lacks
    assert op.lacked_from("cuda", (2, 0)) == {"float16": (2, 13), "bfloat16": (2, 13)}
    assert find_op("torch.angle") is find_op("torch.angle")
    before = find_op("torch.angle", (2, 4))
    assert before is not None
    assert before.lacks["cuda"] == ("float16", "bfloat16")
    assert find_op("torch.cholesky", (2, 15)) is None
    assert find_op("torch.cholesky", (2, 13)) is not None


def test_changes_are_told_from_release_to_release() -> None:
    base: dict[str, Any] = {
        "kept": {"result": "first"},
        "gone": {"result": "first"},
        "gains": {"result": "first", "unsupported": {"cuda": ["float16"]}, "unsupported_until": {"cuda": {"x": "2.0"}}},
        "turns": {"result": "promote", "params": ["a"]},
    }
    first = {"kept": base["kept"], "gains": {"result": "first"}, "turns": base["turns"], "new": {"result": "float"}}
    second = {**first, "turns": {"result": "first", "params": ["a"]}, "new": {"result": "float", "even": True}}
    assert changes("ops", base, [("2.14", first), ("2.15", second)], "2.13") == {
        "gains": {"2.14": {"unsupported": None, "unsupported_until": {"cuda": {"x": "2.0", "float16": "2.13"}}}},
        "gone": {"2.14": None},
        "new": {"2.14": {"result": "float"}, "2.15": {"even": True}},
        "turns": {"2.15": {"result": "first", "before": {"2.15": "promote"}}},
    }
