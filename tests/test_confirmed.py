"""benchmarks/confirmed: what runs make of the findings in a made-up library, and how it is counted and kept."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from confirmed import running, table  # noqa: E402
from confirmed.command import main  # noqa: E402
from confirmed.outcome import (  # noqa: E402  # noqa: E402
    ALONE,
    ANOTHER,
    CONFIRMED,
    HERE,
    OUTCOME,
    RAN,
    UNREACHED,
    UNRUNNABLE,
    Library,
    Outcome,
    at_first_sight,
    load,
    save,
)
from ecosystem.releases import listed  # noqa: E402
from figures import results  # noqa: E402
from found.case import load as load_cases  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = """\
import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2)

    def forward(self, x):
        return self.lin(x.float())


class Closed(nn.Module):
    def __init__(self, secret):
        super().__init__()
        self.lin = nn.Linear(secret.open().width, 2)

    def forward(self, x):
        return self.lin(x.float())
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``releases.txt``, beside the installed distribution ``made-up`` 1.0."""
    site = tmp_path / "site"
    info = site / "made_up-1.0.dist-info"
    (site / "made_up").mkdir(parents=True)
    (site / "made_up" / "__init__.py").write_text(LAYERS)
    (site / "made_up" / "another.py").write_text(LAYERS)
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (info / "RECORD").write_text("made_up/__init__.py,,\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    (tmp_path / "releases.txt").write_text("made-up==1.0\nmade-other==2.0\n")
    return tmp_path


def run(folder: Path, *options: str) -> int:
    kept = ["--outcomes", str(folder / "outcomes.jsonl"), "--list", str(folder / "releases.txt")]
    return main([*kept, "--work", str(folder / "work"), *options])


def outcome(library: str = "made-up", line: int = 1, made: str = CONFIRMED, **other: Any) -> Outcome:
    values = {"scenario": "bf16", "severity": "error", "certainty": "likely", "code": "AMP102"} | other
    return Outcome(
        library, "1.0", "a.py", line, outcome=made, error="", amplint="0.1", fingerprint=f"of {line}", **values
    )


def test_findings_of_an_installed_library_are_run(
    library: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(library, "--run") == 1
    said = capsys.readouterr()
    assert "made-other is not installed: pip install made-other==2.0" in said.err
    libraries, outcomes = load(library / "outcomes.jsonl")
    assert [(one.library, one.release) for one in libraries] == [("made-up", "1.0")]
    made = {(one.line, one.scenario): one for one in outcomes}
    assert {(one.path, one.code) for one in outcomes} == {("made_up/__init__.py", "AMP102")}
    assert made[11, "bf16"].outcome == CONFIRMED
    assert "same dtype" in made[11, "bf16"].error
    assert made[20, "bf16"].outcome in (UNRUNNABLE, ALONE)
    assert str(library) not in (library / "outcomes.jsonl").read_text()
    assert run(library, "--show", CONFIRMED) == 0
    assert "confirmed: made-up made_up/__init__.py:11 AMP102 bf16" in capsys.readouterr().out
    kept, check = (library / "outcomes.jsonl").read_text(), running._amplint

    def only_check(command: str, *options: str, seconds: float | None = None) -> Any:
        assert command == "check"
        return check(command, *options, seconds=seconds)

    monkeypatch.setattr(running, "_amplint", only_check)
    assert run(library, "--run", "made-up") == 0
    assert (library / "outcomes.jsonl").read_text() == kept


def test_a_library_that_is_not_there_or_not_listed_is_said(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(library, "--run", "made-other") == 2
    assert run(library, "--run", "unheard-of") == 2
    assert "does not list unheard-of" in capsys.readouterr().err
    (library / "releases.txt").write_text("made-up==3.0\n")
    assert run(library, "--run") == 2
    assert "made-up 1.0 is installed: pip install made-up==3.0" in capsys.readouterr().err
    assert run(library) == 2
    assert "no outcomes yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdict", "error", "alone", "made"),
    [
        ("confirmed", "RuntimeError: dtypes", False, CONFIRMED),
        ("confirmed", "RuntimeError: dtypes", True, ALONE),
        ("not-reproduced", None, False, RAN),
        ("not-reproduced", None, True, ALONE),
        ("not-reproduced", "the run ended at a.py:3: RuntimeError: dtypes", False, ANOTHER),
        ("not-reached", "the run ended at a.py:3: RuntimeError: dtypes", False, ANOTHER),
        ("not-reached", None, False, UNREACHED),
        ("not-runnable", "cannot build", True, UNRUNNABLE),
        ("needs-gpu", "no kernel", False, UNRUNNABLE),
    ],
)
def test_what_a_row_of_verify_means(verdict: str, error: str | None, alone: bool, made: str) -> None:
    assert running.outcome_of({"verdict": verdict, "error": error}, alone=alone) == made


def test_a_finding_counts_once_by_the_scenario_that_says_most_and_halves_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confirmed.outcome.half", lambda name: "kept" if name in ("back", "timm") else "learned")
    rows = [outcome(), outcome(scenario="fp16", made=RAN), outcome(line=2, made=RAN), outcome(line=3, made=UNREACHED)]
    rows += [outcome("back", made=RAN), outcome("back", line=2, made=CONFIRMED, severity="warning", code="AMP302")]
    assert table.findings(rows).decided == (2, 4)
    names = ("made-up", "back", "timm", "quiet")
    save([Library(name, "1.0", "0.1", 2) for name in names], rows, tmp_path / "kept.jsonl")
    kept: dict[str, Any] = {}
    monkeypatch.setattr(results, "save", lambda name, command, **said: kept.update(said))
    assert main(["--outcomes", str(tmp_path / "kept.jsonl"), "--show", RAN, "--figures"]) == 0
    said = capsys.readouterr().out
    assert "ran and did not fail: made-up a.py:2" in said
    assert "ran and did not fail: back" not in said
    assert "seen: 3 libraries" in said
    assert "first sight: 1 libraries" in said
    assert kept["of"] == "0.1"
    assert kept["seen"]["outcomes"]["all"]["confirmed of decided"] == (1, 2)
    assert kept["seen"]["outcomes"]["fp16"]["confirmed of decided"] == (0, 1)
    assert kept["first_sight"]["outcomes"]["AMP302"]["confirmed of decided"] == (1, 1)
    assert kept["first_sight"]["findings"] == 2


def test_the_judge_is_held_against_what_is_known_to_be_real(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(iter(load_cases().values()))
    real = replace(outcome(line=case.line, code=case.code), library=case.package, release=case.release, path=case.path)
    rows = [replace(real, outcome=RAN), outcome(line=case.line), replace(real, line=case.line + 1)]
    assert [table.known(one) for one in rows] == [True, False, False]
    *_, told = table.lines([Library(case.package, case.release, "0.1", 0)], rows)
    assert told == "of 1 findings that benchmarks/found shows to be real: 1 ran and did not fail"


def test_outcomes_of_several_versions_are_no_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save([Library("a", "1.0", "0.1", 0), Library("b", "1.0", "0.2", 0)], [outcome("a")], tmp_path / "kept.jsonl")
    assert main(["--outcomes", str(tmp_path / "kept.jsonl"), "--figures"]) == 1
    assert "the outcomes are of 0.1, 0.2" in capsys.readouterr().err
    (tmp_path / "kept.jsonl").write_text(json.dumps({"library": "a"}) + "\n")
    assert main(["--outcomes", str(tmp_path / "kept.jsonl")]) == 2
    assert "holds no outcomes" in capsys.readouterr().err


def test_a_line_of_an_error_names_no_folder_of_this_machine() -> None:
    said = "FileNotFoundError: no /home/me/.cache/x.bin in\n /tmp/a b/c, and 1/2 of it"
    assert running._one_line(said) == "FileNotFoundError: no x.bin in a b/c, and 1/2 of it"


def test_the_list_is_long_and_what_is_kept_is_of_it() -> None:
    releases = {(one.package, one.version) for one in listed(HERE / "releases.txt")}
    assert len(releases) >= 25
    libraries, outcomes = load()
    assert {(one.library, one.release) for one in libraries} <= releases
    assert {one.library for one in outcomes} <= {one.library for one in libraries}
    assert {one.outcome for one in outcomes} <= set(OUTCOME)
    assert not at_first_sight("timm")
