"""The benchmark of mutants: which fixes are run again, what becomes of them, and what stands on the page."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from figures import results  # noqa: E402
from figures.page import page  # noqa: E402
from mutants.cured import Fixing, fate  # noqa: E402
from mutants.edits import Edit, apply  # noqa: E402
from mutants.outcomes import BETWEEN  # noqa: E402
from mutants.rows import Row  # noqa: E402
from mutants.summary import keep_cured, keep_verified  # noqa: E402


def _row(*edits: Edit) -> Row:
    """A mutant that raises with half weights."""
    return Row("toy", "1.0", "toy/a.py", "", "toy.a.f", "function", "a", edits, {"fp16": {"label": "raises"}})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"fp16": {"label": "harmless"}}, "cured"),
        ({"fp16": {"label": "undecided"}}, "cured"),
        ({"fp16": {"label": "undecided", "error": BETWEEN}}, "undecided"),
        ({"fp16": {"label": "nonfinite"}}, "still hurts"),
        ({"fp16": {"label": "harmless"}, "bf16": {"label": "raises"}}, "made worse"),
        ("it fails in float32 too", "made worse"),
    ],
)
def test_fate_of_a_fixed_mutant(after: dict[str, dict[str, str]] | str, said: str) -> None:
    before = _row()
    before.labels["bf16"] = {"label": "harmless"}
    assert fate(before, after if isinstance(after, str) else {"bf16": {"label": "harmless"}, **after}) == said


SCALED = """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        scaler = torch.cuda.amp.GradScaler()
        return scaler.scale(self.linear(x))
"""


@pytest.mark.parametrize(
    ("edit", "lacking"),
    [
        (Edit(12, 41, 12, 41, ".float()"), []),
        (Edit(12, 41, 12, 41, ".sqrt()"), ["not found"]),
    ],
)
def test_only_a_fix_of_what_a_mutant_does_wrong_may_cure_it(tmp_path: Path, edit: Edit, lacking: list[str]) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(SCALED)
    row = _row(edit)
    fixing = Fixing()
    after = fixing(row, path, apply(SCALED.encode(), row.edits))
    assert [why for _, why in fixing.unfixed] == lacking
    assert (after is None) == bool(lacking)


def test_the_figures_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results.save, "__kwdefaults__", {**results.save.__kwdefaults__, "folder": tmp_path})
    cured = {"a": Counter({"cured": 1, "no fix": 2, "not found": 1}), "b": Counter({"made worse": 2}), "c": Counter()}
    keep_cured({"learned": cured, "kept": {"a": Counter({"cured": 5})}}, {"learned": 2, "kept": 0}, 9)
    confirmed = {"a": Counter({"confirmed": 9, "in some scenarios": 1})}
    left_out = {"learned": Counter({"it is no class": 4}), "kept": Counter[str]()}
    keep_verified({"learned": confirmed, "kept": confirmed}, left_out, 20, 3)
    text = page(results.load(tmp_path))
    assert "--cured --most 9 --figures" in text
    assert "| mutants that hurt | 6 | 5 |\n" in text
    assert "| cured, of those found with a fix | 1 of 3 (33%) | 5 of 5 (100%) |\n" in text
    assert "| made worse, of those found with a fix | 2 of 3 (67%) | 0 of 5 (0%) |\n" in text
    assert "| | not found | no fix | cured | still hurts | undecided | made worse |\n" in text
    assert "| all | 1 | 2 | 1 | 0 | 0 | 2 |\n| a | 1 | 2 | 1 | 0 | 0 | 0 |\n| b | 0 | 0 | 0 | 0 | 0 | 2 |\n" in text
    assert "--verify --count 20 --seed 3 --figures" in text
    assert "| mutants drawn | 14 | 10 |\n" in text
    assert "| confirmed in every scenario | 9 of 10 (90%) | 9 of 10 (90%) |\n" in text
    assert "| it is no class | 4 |\n" in text
