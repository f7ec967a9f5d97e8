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

from judged.kinds import in_preview as kept_back
from judged.kinds import kinds
from judged.rounds import Rounds

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
KIND = Kind("AMP102", half_weights_only=True, certainty="proven", right=0.2, packages=20)


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


@pytest.mark.parametrize("other", [replace(KIND, half_weights_only=False), replace(KIND, certainty="likely")])
def test_the_other_kinds_of_the_rule_are_told(other: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "kinds", lambda: (other,))
    assert list(codes(tmp_path)) == ["AMP102"]


def test_the_page_of_the_rule_has_the_figure() -> None:
    page = rule_page(next(rule for rule in load_rules() if rule.code == "AMP102"))
    assert "what is proven and holds with half weights only (20% right at first sight, in 20 packages)" in page


def test_the_kinds_are_those_of_the_rounds() -> None:
    rounds = Rounds()
    found = kinds(rounds.load(name) for name in rounds.names())
    kept = [Kind(**row) for row in json.loads(preview.FILE.read_text(encoding="utf-8"))]
    assert kept == [kind for kind in found if kept_back(kind, kept)]


@pytest.mark.parametrize(
    ("right", "packages", "goes", "stays"),
    [(0.2, 10, True, True), (0.55, 10, False, True), (0.61, 10, False, False), (0.0, 4, True, True)],
)
def test_what_is_kept_back_stays_until_its_share_is_enough(
    right: float, packages: int, goes: bool, stays: bool
) -> None:
    kind = Kind("AMP303", half_weights_only=True, certainty="likely", right=right, packages=packages)
    other = replace(kind, certainty="proven")
    assert kept_back(kind, [other]) is goes
    assert kept_back(kind, [other, replace(kind, right=0.1)]) is stays
