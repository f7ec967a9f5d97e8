"""benchmarks/found: cases over a made-up package, and docs/found.md beside the cases."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from ecosystem.releases import listed  # noqa: E402
from found.case import load  # noqa: E402
from found.command import main  # noqa: E402
from found.page import errors, page  # noqa: E402

from amplint.infer.lattice.scenarios import find_scenario  # noqa: E402
from amplint.plugins import load_rules  # noqa: E402
from amplint.verify.job import MODES  # noqa: E402

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


class Cost(Wide):
    def forward(self, x: torch.Tensor):
        return -torch.log(x + 1e-8)


def ends(x: torch.Tensor):
    raise SystemExit
"""
"""``Wide`` fails at line 11 in half precision, ``Cost`` takes the logarithm of zero at line 16 in float16."""

CASE = """\
from found.case import Case


def build():
    import torch
    import made_up

    return made_up.{target}, (torch.{made},), {{}}


CASE = Case(
    package="made-up",
    release="{release}",
    path="made_up/__init__.py",
    line={line},
    code={code!r},
    scenario={scenario!r},
    error={error!r},
    breaks="Nobody uses it.",
    build=build,
)
"""

WIDE = {
    "target": "Wide()",
    "made": "ones(3, 4)",
    "release": "1.0",
    "line": 11,
    "code": "AMP102",
    "scenario": "bf16",
    "error": "same dtype",
}
COST = {
    **WIDE,
    "target": "Cost()",
    "made": "zeros(3)",
    "line": 16,
    "code": "AMP302",
    "scenario": "fp16",
    "error": "inf or nan",
}


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for cases, beside the installed distribution ``made-up`` 1.0."""
    site = tmp_path / "site"
    (site / "made_up").mkdir(parents=True)
    (site / "made_up" / "__init__.py").write_text(LAYERS)
    (site / "made_up-1.0.dist-info").mkdir()
    (site / "made_up-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two cases of one second and length would share it
    (tmp_path / "cases").mkdir()
    return tmp_path / "cases"


def run(folder: Path, *options: str, **written: dict[str, object]) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit status, and by case what came of it and what was said."""
    for name, values in written.items():
        (folder / f"{name}.py").write_text(CASE.format(**values))
    report = folder.parent / "report.json"
    status = main(["--cases", str(folder), "--runs", str(report), *options])
    return status, {one["name"]: (one["status"], one["text"]) for one in json.loads(report.read_text())}


def test_a_case_is_shown_by_its_run_and_by_the_finding_at_its_line(cases: Path, capsys) -> None:
    page_file = cases.parent / "found.md"
    status, said = run(cases, "--write", str(page_file), wide=WIDE, cost=COST)
    assert status == 0
    assert said["wide"][0] == "shown"
    assert "must have the same dtype" in said["wide"][1]
    assert said["cost"] == ("shown", "inf or nan in the result, which is finite in float32")
    assert "2 of 2 cases shown, in 1 packages, by 2 rules; 0 not shown, 0 not run" in capsys.readouterr().out
    assert errors(page_file.read_text()) == {name: text for name, (_, text) in said.items()}


def test_what_does_not_show_says_why(cases: Path) -> None:
    status, said = run(
        cases,
        runs_clean={**WIDE, "scenario": "autocast-bf16"},
        other_error={**WIDE, "error": "out of memory"},
        other_line={**WIDE, "line": 15},
        other_code={**WIDE, "code": "AMP105"},
        reported={**WIDE, "code": None},
        not_built={**WIDE, "target": "Missing()"},
        fails_anyway={**WIDE, "made": "ones(3, 5)"},
        not_finite={**COST, "made": "full((3,), float('inf'))"},
        ends_the_process={**WIDE, "target": "ends"},
        wide=WIDE,
    )
    assert status == 1
    assert said.pop("wide")[0] == "shown"
    assert {outcome for outcome, _ in said.values()} == {"not shown"}
    reasons = {name: text for name, (_, text) in said.items()}
    assert reasons["runs_clean"] == "clean in autocast-bf16: clean"
    assert reasons["other_error"].startswith("another error: RuntimeError: mat1 and mat2")
    assert re.match(r"not at made_up/__init__\.py:15 but at .*__init__\.py:11: Runtime", reasons["other_line"])
    assert reasons["other_code"].endswith("AMP105 at made_up/__init__.py:11 in bf16, but AMP102")
    assert reasons["reported"] == "marked as not reported, but amplint reports AMP102"
    assert reasons["not_built"].startswith("not built: ")
    assert reasons["fails_anyway"].startswith("fails in float32: RuntimeError: mat1 and mat2 shapes")
    assert reasons["not_finite"] == "not finite in float32"


def test_a_release_that_is_not_installed_is_not_counted(cases: Path, capsys) -> None:
    absent = {**WIDE, "release": "2.0"}
    status, said = run(cases, absent=absent)
    assert status == 2
    assert said == {"absent": ("not run", "made-up 1.0 is installed: pip install made-up==2.0")}
    status, said = run(cases, "--write", str(cases.parent / "found.md"), wide=WIDE)
    assert status == 1
    assert said["wide"][0] == "shown"
    assert not (cases.parent / "found.md").exists()
    printed = capsys.readouterr()
    assert "1 of 2 cases shown, in 1 packages, by 1 rules; 0 not shown, 1 not run" in printed.out
    assert "not written: absent would be lacking" in printed.err


def test_what_was_shown_is_not_run_again_until_the_case_changes(cases: Path, capsys) -> None:
    status, said = run(cases, wide=WIDE)
    assert (status, said["wide"][0]) == (0, "shown")
    capsys.readouterr()
    assert run(cases, wide=WIDE) == (0, said)
    assert capsys.readouterr().out == "1 of 1 cases shown, in 1 packages, by 1 rules; 0 not shown, 0 not run\n"
    status, said = run(cases, wide={**WIDE, "release": "2.0"})
    assert (status, said["wide"][0]) == (2, "not run")


def test_cases_are_chosen_by_name(cases: Path, capsys) -> None:
    absent = {**WIDE, "release": "2.0"}
    status, said = run(cases, "--case", "wide", wide=absent, cost=COST)
    assert (status, [*said]) == (2, ["wide"])
    capsys.readouterr()
    assert main(["--cases", str(cases), "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "cost made-up==1.0 made_up/__init__.py:16 AMP302 fp16",
        "wide made-up==2.0 made_up/__init__.py:11 AMP102 bf16",
    ]
    with pytest.raises(SystemExit, match="2"):
        main(["--cases", str(cases), "--case", "tall"])
    (cases / "empty.py").write_text("")
    with pytest.raises(ValueError, match=r"empty\.py has no CASE"):
        main(["--cases", str(cases)])


def test_the_page_is_that_of_the_cases() -> None:
    cases = load()
    written = (ROOT / "docs" / "found.md").read_text(encoding="utf-8")
    said = errors(written)
    assert said.keys() == cases.keys(), "run python benchmarks/found --write docs/found.md"
    assert page(cases, said) == written, "run python benchmarks/found --write docs/found.md"
    assert not {name: said[name] for name, case in cases.items() if case.error not in said[name]}


def test_cases_name_what_there_is() -> None:
    cases = load()
    releases = {(release.package, release.version) for release in listed()}
    codes = {rule.code for rule in load_rules()} | {None}
    for name, case in cases.items():
        assert (case.package, case.release) in releases, name
        assert case.code in codes, name
        assert find_scenario(case.scenario) is not None, name
        assert case.mode in MODES, name
        assert case.device in ("cuda", "cpu"), name
    assert len({(case.package, case.path, case.line, case.code) for case in cases.values()}) == len(cases)
    assert sum(case.code is not None for case in cases.values()) >= 31
