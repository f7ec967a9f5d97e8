"""``check --baseline`` and ``--write-baseline``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amplint.baseline import Baseline, Entry, as_text, read_baseline
from amplint.finding import Certainty, Finding, Severity
from amplint.narrowing import Narrowing
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Completed

    Run = Callable[..., Completed]

BASE = "base.json"


@pytest.fixture
def old(project: Path, run: Run) -> Path:
    """A project with three known findings."""
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("x.half()\ny = 1\nx.double()\n")
    (project / "b.py").write_text("x.double()\n")
    result = run("check", "--write-baseline", BASE)
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr == f"Wrote 3 findings in 2 files to {BASE}.\n"
    return project


def rows(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["findings"]


def test_the_file_is_sorted_relative_and_one_line_a_finding(old: Path, run: Run) -> None:
    text = (old / BASE).read_text()
    found = json.loads(text)["findings"]
    assert [(row["file"], row["code"]) for row in found] == [
        ("b.py", "TOY102"),
        ("src/a.py", "TOY101"),
        ("src/a.py", "TOY102"),
    ]
    assert len(text.splitlines()) == len(found) + 6
    told = json.loads(run("check", "--output-format", "json").stdout)
    assert sorted(row["fingerprint"] for row in found) == sorted(finding["fingerprint"] for finding in told)
    assert run("check", "--write-baseline", BASE).status == 0
    assert (old / BASE).read_text() == text


@pytest.mark.parametrize("output_format", ["full", "concise", "json"])
def test_what_is_known_is_not_reported_and_not_counted(old: Path, run: Run, output_format: str) -> None:
    result = run("check", "--baseline", BASE, "--output-format", output_format)
    assert (result.status, result.stdout) == (0, "[]\n" if output_format == "json" else "")
    assert result.stderr == f"All checks passed: 2 files.\n3 findings that {BASE} knows are left out.\n"
    assert run("check", "--baseline", BASE, "--statistics").stdout == ""


def test_what_is_known_is_not_fixed(old: Path, run: Run) -> None:
    file = old / "src" / "a.py"
    file.write_text(f"import torch\n{file.read_text()}z.half(1)\n")
    result = run("check", "--baseline", BASE, "--fix")
    assert result.status == 0
    assert file.read_text() == "import torch\nx.half()\ny = 1\nx.double()\nz.to(torch.float16)\n"
    assert "Fixed 1 finding in 1 file." in result.stderr


def test_moved_lines_stay_known_and_new_ones_are_told(old: Path, run: Run) -> None:
    file = old / "src" / "a.py"
    file.write_text("# a line\n\n" + file.read_text() + "w.double()\nx.double()\n")
    result = run("check", "--baseline", BASE, "--output-format", "json")
    assert [finding["location"]["row"] for finding in json.loads(result.stdout)] == [6, 7]
    assert result.status == 1


def test_a_baseline_speaks_of_its_own_folder(old: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old / "src")
    assert run("check", "--baseline", f"../{BASE}").status == 0
    moved = old.rename(old.with_name("moved"))
    monkeypatch.chdir(moved.parent)
    assert run("check", "moved", "--baseline", f"moved/{BASE}").status == 0
    (moved / BASE).rename(moved.parent / BASE)
    assert run("check", "moved", "--baseline", BASE).status == 1


def test_what_is_gone_is_told_with_how_to_refresh(old: Path, run: Run) -> None:
    (old / "src" / "a.py").write_text("x.double()\n")
    (old / "b.py").unlink()
    result = run("check", "--baseline", BASE)
    assert result.status == 0
    assert (
        f"2 findings that {BASE} knows are gone; to refresh it: amplint check --write-baseline {BASE}" in result.stderr
    )
    only_the_file = run("check", "--baseline", BASE, "src", "--select", "TOY102").stderr
    assert f"1 finding that {BASE} knows is gone; to refresh it: amplint check src --write-baseline" in only_the_file
    assert run("check", "--write-baseline", BASE).status == 0
    assert [row["file"] for row in rows(old / BASE)] == ["src/a.py"]
    assert "gone" not in run("check", "--baseline", BASE).stderr


def test_what_was_not_looked_for_is_not_gone(old: Path, run: Run) -> None:
    for arguments in (("--select", "TOY108"), ("src",), ("--ignore", "TOY101")):
        assert "gone" not in run("check", "--baseline", BASE, *arguments).stderr
    (old / "src" / "a.py").write_text("x.half(\n")
    result = run("check", "--baseline", BASE)
    assert result.status == 1
    assert "gone" not in result.stderr


def test_a_run_on_some_files_keeps_what_is_known_of_others(old: Path, run: Run) -> None:
    (old / "b.py").write_text("x.half()\n")
    result = run("check", "b.py", "--write-baseline", BASE)
    assert result.stderr == f"Wrote 1 finding in 1 file to {BASE}, and kept 2 of files that were not checked.\n"
    assert [(row["file"], row["code"]) for row in rows(old / BASE)] == [
        ("b.py", "TOY101"),
        ("src/a.py", "TOY101"),
        ("src/a.py", "TOY102"),
    ]
    assert run("check", "--baseline", BASE).status == 0


def test_the_configuration_may_name_it(old: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (old / "amplint.toml").write_text(f'baseline = "{BASE}"\n')
    monkeypatch.chdir(old / "src")
    assert run("check", "..").status == 0
    assert run("check", "..", "--isolated").status == 1
    (old / "src" / "a.py").write_text("new.half()\n")
    assert run("check", "..").status == 1
    assert run("check", "..", "--write-baseline", f"../{BASE}").status == 0
    assert run("check", "..").status == 0
    (old / BASE).unlink()
    result = run("check", "..")
    assert result.status == 2
    assert "there is no baseline" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no baseline"),
        ("{", "is damaged: it is not JSON (line 1)"),
        ("<<<<<<< HEAD\n", "is damaged: it is not JSON (line 1); delete it and write it again with --write-baseline"),
        ("[]", "is no baseline that amplint wrote"),
        ('{"version": 1}', "is no baseline that amplint wrote"),
        ('{"format": "amplint-baseline", "version": 2}', "has version 2, and this amplint reads version 1"),
        ('{"format": "amplint-baseline", "version": 1}', "is damaged at finding 1"),
        ('{"format": "amplint-baseline", "version": 1, "findings": [{"file": "a.py"}]}', "is damaged at finding 1"),
    ],
)
def test_a_damaged_or_foreign_file_is_one_line(project: Path, run: Run, text: str | None, said: str) -> None:
    (project / "a.py").write_text("x.half()\n")
    if text is not None:
        (project / BASE).write_text(text)
    for option in ("--baseline", "--write-baseline") if text is not None else ("--baseline",):
        result = run("check", option, BASE)
        assert (result.status, result.stdout) == (2, "")
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert text is None or (project / BASE).read_text() == text


def test_other_files_are_not_overwritten(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\n")
    assert run("check", "--write-baseline", "a.py").status == 2
    assert (project / "a.py").read_text() == "x.half()\n"
    result = run("check", "--write-baseline", "nowhere/base.json")
    assert result.status == 2
    assert "there is no folder" in result.stderr


def test_a_file_that_could_not_be_judged_keeps_what_is_known(old: Path, run: Run) -> None:
    (old / "b.py").write_text("x.boom()\n")
    result = run("check", "--write-baseline", BASE)
    assert result.status == 2
    assert "internal error in TOY103" in result.stderr
    assert [row["file"] for row in rows(old / BASE)] == ["b.py", "src/a.py", "src/a.py"]


@pytest.mark.parametrize("other", ["--fix", "--diff", "--verify", "--statistics", "--add-ignore"])
def test_what_does_not_go_with_writing(project: Path, run: Run, other: str) -> None:
    result = run("check", "--write-baseline", BASE, other)
    assert result.status == 2
    assert "--write-baseline" in result.stderr
    assert not (project / BASE).exists()


def test_comments_and_unreadable_files_can_be_known(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x = 1  # amplint: disable\ny = 1  # amplint: off\n")
    (project / "b.py").write_text("x = (\n")
    assert run("check", "--write-baseline", BASE).status == 0
    assert run("check", "--baseline", BASE).status == 0
    file = project / "a.py"
    file.write_text("z = 1  # amplint: skip\n" + file.read_text())
    found = json.loads(run("check", "--baseline", BASE, "--output-format", "json").stdout)
    assert [(finding["code"], finding["location"]["row"]) for finding in found] == [("AMP900", 1)]


def test_stdin_is_known_by_the_name_of_its_file(old: Path, run: Run) -> None:
    text = (old / "src" / "a.py").read_bytes()
    assert run("check", "-", "--stdin-filename", "src/a.py", "--baseline", BASE, stdin=text).status == 0
    assert run("check", "-", "--stdin-filename", "src/c.py", "--baseline", BASE, stdin=text).status == 1
    result = run("check", "-", "--baseline", BASE, stdin=text)
    assert result.status == 2
    assert "--baseline needs --stdin-filename" in result.stderr


def test_a_real_run_in_several_processes(old: Path, run_process: Callable[..., Completed]) -> None:
    (old / "large.py").write_text("# a line\n" * 250_000)
    assert run_process("check", "--jobs", "2", "--baseline", BASE).status == 0


def test_equal_fingerprints_are_counted(project: Path) -> None:
    span = Span(Location(1, 1), Location(1, 2))
    path = project / "a.py"
    one = Finding(
        "TOY101", "toy-half", "", Severity.ERROR, Certainty.PROVEN, path, span, (), "cuda", fingerprint="equal"
    )
    baseline = Baseline(project / BASE, {Entry("a.py", "TOY101", "equal"): 2})
    (project / BASE).write_text(as_text(baseline))
    read = read_baseline(project / BASE)
    assert read == baseline
    left, known = Narrowing(read.by_file()["a.py"]).split([one, one, one], Source(path, b"x"))
    assert (len(left), len(known)) == (1, 2)


def test_the_file_has_the_mode_that_others_have(old: Path) -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    assert Path(BASE).stat().st_mode & 0o777 == 0o666 & ~mask
    assert sorted(path.name for path in old.iterdir()) == ["b.py", BASE, "src"]


def test_cells_of_notebooks_are_known(project: Path, run: Run) -> None:
    file = project / "a.ipynb"
    cells = [["x.half()\n"], ["y = (\n"], ["z = (\n"]]
    file.write_text(notebook(cells))
    told = json.loads(run("check", "--output-format", "json").stdout)
    assert [finding["code"] for finding in told] == ["TOY101", "AMP901", "AMP901"]
    assert run("check", "--write-baseline", BASE).status == 0
    result = run("check", "--baseline", BASE)
    assert (result.status, result.stdout) == (0, "")
    assert "3 findings that base.json knows are left out" in result.stderr
    file.write_text(notebook([["new.half()\n"], *cells]))
    found = json.loads(run("check", "--baseline", BASE, "--output-format", "json").stdout)
    assert [(finding["code"], finding["cell"]) for finding in found] == [("TOY101", 1)]


def notebook(cells: list[list[str]]) -> str:
    code = [{"cell_type": "code", "metadata": {}, "source": cell, "outputs": []} for cell in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def test_an_extended_configuration_names_it_from_its_own_folder(
    old: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old / "shared.toml").write_text(f'baseline = "{BASE}"\n')
    (old / "src" / "amplint.toml").write_text('extend = "../shared.toml"\n')
    assert run("check", "src").status == 0
    assert f"baseline: {old / BASE}" in run("check", "src", "--show-settings").stdout
