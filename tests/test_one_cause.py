"""One cause, one finding: what fails for one cast, table, gradient or class is told once, with the other places."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amplint.finding import Applicability, Certainty, Edit, Finding, Fix, Place, Severity
from amplint.one_cause import one_for_each_cause
from amplint.source import Location, Span

HERE = Path("/project/model.py")

BRANCHES = """\
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)

    def forward(self, x, keys: bool):
        wide = x.float()
        if keys:
            return self.key(wide)
        return self.query(wide)
"""

FUNCTION = """\
import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad
"""

TWO_CASTS = """\
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)

    def forward(self, x, keys: bool):
        if keys:
            return self.key(x.float())
        return self.query(x.float())
"""


def found(tmp_path: Path, text: str, *options: str) -> list[dict[str, Any]]:
    path = tmp_path / "model.py"
    path.write_text(text)
    command = [sys.executable, "-m", "amplint", "check", "--isolated", "--exit-zero", "--output-format", "json"]
    done = subprocess.run([*command, *options, str(path)], capture_output=True, text=True, check=True)
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    return listed


def places(finding: dict[str, Any]) -> list[int]:
    return [place["location"]["row"] for place in (finding, *finding["also"])]


def test_one_cast_fails_in_two_branches(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, BRANCHES)
    assert finding["code"] == "AMP102"
    assert places(finding) == [14, 15]
    assert list(finding["also"][0]) == ["filename", "location", "end_location"]
    assert finding["also"][0]["filename"] == finding["filename"]


def test_two_casts_are_two_findings(tmp_path: Path) -> None:
    assert [places(finding) for finding in found(tmp_path, TWO_CASTS)] == [[13], [14]]


def test_a_function_without_decorators_is_one_finding(tmp_path: Path) -> None:
    by_code = {finding["code"]: finding for finding in found(tmp_path, FUNCTION)}
    assert list(by_code) == ["AMP201", "AMP204"]
    assert places(by_code["AMP201"]) == [6, 11]
    assert places(by_code["AMP204"]) == [13, 13]


def test_each_decorator_can_be_asked_for_alone(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, FUNCTION, "--select", "AMP202")
    assert places(finding) == [11]


def test_text_says_where_else(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(BRANCHES)
    command = [sys.executable, "-m", "amplint", "check", "--isolated", "--exit-zero", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "= also at: model.py:15:16" in done.stdout


def test_a_fix_leaves_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, BRANCHES, "--fix", "--unsafe-fixes") == []


def finding(row: int, code: str = "AMP102", *, culprit: int | None = 1, fix: str = "") -> Finding:
    span = span_of(row)
    edits = Fix(Applicability.SAFE, "cast", (Edit(Span(span.end, span.end), fix),)) if fix else None
    place = Place(HERE, span_of(culprit)) if culprit is not None else None
    return Finding(
        code,
        "name",
        "message",
        Severity.ERROR,
        Certainty.LIKELY,
        HERE,
        span,
        ("fp16", "bf16"),
        "cuda",
        fix=edits,
        culprit=place,
    )


def span_of(row: int) -> Span:
    return Span(Location(row, 5), Location(row, 9))


def rows(told: list[Finding]) -> list[list[int]]:
    return [[f.span.start.row, *(place.span.start.row for place in f.also)] for f in told]


def test_what_has_no_known_culprit_stays_apart() -> None:
    assert rows(one_for_each_cause([finding(5, culprit=None), finding(6, culprit=None)])) == [[5], [6]]


def test_other_rules_stay_apart_unless_one_mend_is_for_both() -> None:
    other = finding(6, "AMP104")
    assert rows(one_for_each_cause([finding(5), other])) == [[5], [6]]
    both = [replace(f, mend="both") for f in (finding(5), other)]
    assert rows(one_for_each_cause(both)) == [[5, 6]]


def test_the_surest_speaks() -> None:
    sure = replace(finding(9), certainty=Certainty.PROVEN)
    assert rows(one_for_each_cause([finding(5), sure])) == [[9, 5]]


def test_what_comes_behind_the_culprit_speaks() -> None:
    assert rows(one_for_each_cause([finding(5, culprit=7), finding(9, culprit=7)])) == [[9, 5]]


@pytest.mark.parametrize(
    "other", [replace(finding(6), severity=Severity.WARNING), replace(finding(6), scenarios=("autocast-bf16",))]
)
def test_another_claim_stays_apart(other: Finding) -> None:
    assert rows(one_for_each_cause([finding(5), other])) == [[5], [6]]


def test_the_fix_mends_all_places() -> None:
    (one,) = one_for_each_cause([finding(5, fix=".a()"), finding(6, fix=".b()")])
    assert one.fix is not None
    assert [edit.content for edit in one.fix.edits] == [".a()", ".b()"]


def test_edits_that_touch_are_not_put_together() -> None:
    clash = replace(finding(6), fix=finding(5, fix=".other()").fix)
    (one,) = one_for_each_cause([finding(5, fix=".a()"), clash])
    assert one.fix is not None
    assert [edit.content for edit in one.fix.edits] == [".a()"]


def test_a_place_without_a_fix_leaves_the_first_its_own() -> None:
    (one,) = one_for_each_cause([finding(5, fix=".a()"), finding(6)])
    assert one.fix == finding(5, fix=".a()").fix
