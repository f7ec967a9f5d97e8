"""Kinds of findings in preview: told to who names the rule, or --scenario, and to who asks for all."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

from amplint.config import Config
from amplint.engine import check_file
from amplint.explain.rule_page import rule_page
from amplint.judge import preview
from amplint.judge.preview import Kind
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

sys.path.append(str(ROOT / "benchmarks"))

from judged.kinds import kept_back
from judged.rounds import Drawn, Rounds, Verdict
from judged.rows import Place

MODULE = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())
"""
KIND = Kind("AMP102", half_weights_only=True, certainty="proven", severity="error", right=0.2, packages=20)
OTHERS = (replace(KIND, half_weights_only=False), replace(KIND, certainty="likely"), replace(KIND, severity="warning"))


@pytest.fixture(autouse=True)
def in_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "kinds", lambda: (KIND,))


def codes(tmp_path: Path, **options: Any) -> dict[str, list[str]]:
    file = tmp_path / "model.py"
    file.write_text(MODULE)
    found = check_file(file, judging_options(Config(), load_rules(), **options)).findings
    return {finding.code: [held.doubt.name for held in finding.doubts] for finding in found}


def test_a_kind_in_preview_is_merely_possible(tmp_path: Path) -> None:
    assert codes(tmp_path) == {}
    assert codes(tmp_path, pedantic=True) == {"AMP102": ["preview"]}


@pytest.mark.parametrize(
    "asked", [{"extend_select": ["AMP102"]}, {"select": ["upcast-matmul-operand"]}, {"scenario": ["bf16"]}]
)
def test_it_is_told_to_who_asks_for_it(tmp_path: Path, asked: dict[str, list[str]]) -> None:
    assert codes(tmp_path, **asked) == {"AMP102": []}


def test_a_prefix_asks_for_no_rule(tmp_path: Path) -> None:
    assert codes(tmp_path, select=["AMP1"]) == {}


@pytest.mark.parametrize("other", OTHERS)
def test_the_other_kinds_of_the_rule_are_told(other: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "kinds", lambda: (other,))
    assert list(codes(tmp_path)) == ["AMP102"]


def test_the_page_of_the_rule_has_the_figure() -> None:
    page = rule_page(next(rule for rule in load_rules() if rule.code == "AMP102"))
    assert "errors that are proven and hold with half weights only (20% right at first sight, in 20 packages)" in page


def test_the_kinds_are_those_of_the_rounds() -> None:
    rounds = Rounds()
    kept = [Kind(**row) for row in json.loads(preview.FILE.read_text(encoding="utf-8"))]
    assert kept == kept_back([rounds.load(name) for name in rounds.names()])


def judged(name: str, right: int, wrong: int) -> list[Drawn]:
    """A round in which readers called so many packages' findings of one kind right and wrong."""
    said = [Verdict("right", "")] * right + [Verdict("wrong", "")] * wrong
    return [
        Drawn(Place(f"{name}-{n}", "1.0", "x.py", 1), "AMP303", "warning", "likely", ("fp16",), "0.1.0", {"one": one})
        for n, one in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("rounds", "back"),
    [
        ([judged("a", 1, 7)], [0.125]),
        ([judged("a", 11, 11)], []),
        ([judged("a", 1, 7), judged("b", 10, 4)], [0.5]),
        ([judged("a", 1, 7), judged("b", 20, 10)], [0.667]),
        ([judged("a", 1, 7), judged("b", 24, 6)], []),
    ],
)
def test_what_is_kept_back_stays_until_its_share_is_clearly_enough(
    rounds: list[list[Drawn]], back: list[float]
) -> None:
    assert [kind.right for kind in kept_back(rounds)] == back


@pytest.mark.parametrize(("gone", "back"), [(0, [0.125]), (4, [0.125]), (5, [])])
def test_what_is_hardly_told_any_more_is_to_be_judged_anew(gone: int, back: list[float]) -> None:
    rows = judged("a", 1, 7)
    rows = [replace(one, gone="0.2.0") for one in rows[:gone]] + rows[gone:]
    assert [kind.right for kind in kept_back([rows])] == back
