"""benchmarks/compared: the readings of fixes beside merged ones, and how they are counted."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from conftest import ROOT

BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from compared.command import figures_of, main, summary  # noqa: E402
from compared.rows import SETTINGS, VERDICTS, load  # noqa: E402
from corpus.rows import LISTS, load_cases  # noqa: E402

if TYPE_CHECKING:
    import pytest


def test_each_round_has_the_same_bugs_of_lists_that_may_be_looked_at() -> None:
    rows = load()
    known = {case.id for name in ("seen", "learned") for case in load_cases(LISTS[name] / "cases.jsonl")}
    assert {row.id for row in rows} <= known
    rounds = Counter(row.round for row in rows)
    assert set(rounds.values()) == {40}
    assert len({(row.round, row.id) for row in rows}) == len(rows)
    assert all(row.verdict in VERDICTS and row.setting in SETTINGS and row.reason and row.edit for row in rows)


def test_better_counts_as_good() -> None:
    rows = [row for row in load() if row.round == 1]
    good = sum(row.verdict in ("as good", "better") for row in rows)
    assert summary(rows).startswith(f"{good} of 40 as good")
    table = figures_of(rows)["fixes"]
    assert isinstance(table, dict)
    assert table["round 1"]["as good or better"] == (good, 40)


def test_the_last_round_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show", "worse"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("worse") for line in lines[:-2])
    assert lines[-1].endswith("harmful 0")
