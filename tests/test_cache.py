"""What checks keep for later ones: taken again only while a check would find the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from cached_project import PACKAGE, make, tasks_in, with_a_cache, without_a_cache
from conftest import ROOT, amplint

from amplint import contents
from amplint.cache import LEAST_FILES
from amplint.cache.checking import checked
from amplint.cache.records import record_of, result_of
from amplint.cache.store import Store, clean
from amplint.engine import check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from amplint.engine import Results, Task

LONG_AGO = 1_600_000_000


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    make(folder)
    settle(folder)
    return folder


def settle(folder: Path) -> None:
    """Let no file have changed lately."""
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def names(folder: Path) -> set[str]:
    return {task.path.name for task in tasks_in(folder)}


def test_what_is_found_rests_on_many_files(checkout: Path) -> None:
    found = {finding.code for result in without_a_cache(checkout) for finding in result.findings}
    assert {"AMP105", "AMP301", "AMP302", "AMP901", "AMP900"} <= found


def test_nothing_is_checked_again_while_nothing_changes(checkout: Path, tmp_path: Path) -> None:
    first, anew = with_a_cache(checkout, tmp_path / "cache")
    assert anew == names(checkout)
    second, anew = with_a_cache(checkout, tmp_path / "cache")
    assert anew == set()
    assert first == second == without_a_cache(checkout)


def append(name: str, text: str) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(path.read_text() + text if path.exists() else text)

    return edit


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return edit


EDITS = {
    "the caller leaves the mask out": replaced("package/model.py", "(x, mask)\n", "(x)\n"),
    "the import makes another dtype": replaced("package/made.py", "device=x.device", "dtype=x.dtype, device=x.device"),
    "the imported module goes": lambda folder: (folder / "package/made.py").unlink(),
    "a package in its place": lambda folder: shutil.copytree(folder / "package", folder / "package/made"),
    "no package any more": lambda folder: (folder / "package/__init__.py").unlink(),
    "another torch is required": replaced("pyproject.toml", "torch>=2.4", "torch==2.0.1"),
    "nothing asks for low precision": lambda folder: (folder / "train.py").unlink(),
    "a new caller": append("package/late.py", "from .scores import Scores\nScores()(1.0)\n"),
    "settings": append("settings.yaml", "precision: bf16\n"),
    "a default dtype": append("package/plain_1.py", "import torch\ntorch.set_default_dtype(torch.float64)\n"),
    "a page that names it": append("README.md", "Use `Normed`.\n"),
    "a line length": append("pyproject.toml", "[tool.ruff]\nline-length = 40\n"),
    "one file alone": append("package/plain_2.py", "OTHER = 1\n"),
    "a comment that is used": replaced("package/silenced.py", "  # amplint: ignore[AMP101]", ""),
}


@pytest.mark.parametrize("edit", EDITS)
def test_after_an_edit_the_same_is_found_as_without_a_cache(edit: str, checkout: Path, tmp_path: Path) -> None:
    with_a_cache(checkout, tmp_path / "cache")
    EDITS[edit](checkout)
    contents.look_again()
    after, anew = with_a_cache(checkout, tmp_path / "cache")
    contents.look_again()
    assert after == without_a_cache(checkout)
    assert anew


def test_edits_change_what_is_found(checkout: Path, tmp_path: Path) -> None:
    """The test above could not fail otherwise."""
    before = without_a_cache(checkout)
    changing = []
    for name, edit in EDITS.items():
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        make(tmp_path / "other")
        edit(tmp_path / "other")
        contents.look_again()
        after = without_a_cache(tmp_path / "other")
        found = [[(f.code, f.certainty, f.span, f.fix) for f in result.findings] for result in after]
        if found != [[(f.code, f.certainty, f.span, f.fix) for f in result.findings] for result in before]:
            changing.append(name)
    assert len(changing) >= 6


def test_files_that_decide_alone_are_not_checked_when_another_changes(checkout: Path, tmp_path: Path) -> None:
    with_a_cache(checkout, tmp_path / "cache")
    append("package/plain_2.py", "OTHER = 1\n")(checkout)
    _, anew = with_a_cache(checkout, tmp_path / "cache")
    assert "plain_2.py" in anew
    assert {"plain_1.py", "broken.py", "__init__.py"}.isdisjoint(anew)


def test_a_change_that_keeps_size_and_time_is_seen(checkout: Path, tmp_path: Path) -> None:
    """A file system's clock may not tell two writes apart that follow each other at once."""
    path = checkout / "package/made.py"
    now = time.time()
    os.utime(path, (now, now))
    with_a_cache(checkout, tmp_path / "cache")
    text = path.read_text()
    path.write_text(text.replace("torch.zeros(3, 4, device=x.device)", "torch.zeros(3, 4, dtype=x.dtype  )"))
    assert path.stat().st_size == len(text)
    os.utime(path, (now, now))
    contents.look_again()
    after, _ = with_a_cache(checkout, tmp_path / "cache")
    assert after == without_a_cache(checkout)


def test_a_file_that_only_got_a_new_time_is_not_checked(checkout: Path, tmp_path: Path) -> None:
    with_a_cache(checkout, tmp_path / "cache")
    os.utime(checkout / "package/pool.py", (LONG_AGO + 5, LONG_AGO + 5))
    _, anew = with_a_cache(checkout, tmp_path / "cache")
    assert anew == set()


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("name", ["package/scores.py", "package/added.py"])
def test_nothing_is_kept_where_something_changes_meanwhile(
    name: str, number: int, checkout: Path, tmp_path: Path
) -> None:
    """Results may be found before the first of them is told, as a pool does: what they rest on is noted before."""

    def check(tasks: Sequence[Task]) -> Results:
        results = list(check_files(tasks, 1))
        for place, result in enumerate(results):
            if place == number:
                append(name, "\n# later\n")(checkout)
            yield result

    list(checked(tasks_in(checkout), tmp_path / "cache", check))
    _, anew = with_a_cache(checkout, tmp_path / "cache")
    assert anew == names(checkout)


def test_other_options_have_results_of_their_own(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMPLINT_CACHE_DIR", str(tmp_path / "cache"))
    plain = [amplint("check", str(checkout), "--output-format=json") for _ in range(2)]
    asked = [amplint("check", str(checkout), "--output-format=json", "--min-severity=error") for _ in range(2)]
    named = amplint("check", str(checkout), "--output-format=json", "--scenario", "bf16")
    assert plain[0] == plain[1] != asked[0] == asked[1]
    assert named == amplint("check", str(checkout), "--output-format=json", "--scenario", "bf16", "--no-cache")


@pytest.mark.parametrize("form", ["full", "sarif", "json", "rdjson"])
def test_reports_of_kept_results_are_the_same(form: str, checkout: Path, tmp_path: Path) -> None:
    cache = ("--cache-dir", str(tmp_path / "cache"))
    anew = amplint("check", str(checkout), "--pedantic", "--output-format", form, "--no-cache")
    assert not (tmp_path / "cache").exists()
    assert amplint("check", str(checkout), "--pedantic", "--output-format", form, *cache) == anew
    assert list((tmp_path / "cache").glob("*/*.json"))
    assert amplint("check", str(checkout), "--pedantic", "--output-format", form, *cache) == anew


def test_fixing_heeds_no_cache(checkout: Path, tmp_path: Path) -> None:
    cache = ("--cache-dir", str(tmp_path / "cache"))
    amplint("check", str(checkout), *cache)
    done = amplint("check", str(checkout), *cache, "--fix", "--unsafe-fixes")
    assert "Fixed 3 findings" in done.stderr
    assert amplint("check", str(checkout), *cache) == amplint("check", str(checkout), "--no-cache")


def spoil(path: Path, text: str) -> None:
    for file in path.glob("*/*.json"):
        file.write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"files": 3, "digests": []}',
        '{"files": {"/x": 1}, "digests": {"/x": [1]}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_cache_is_an_empty_one(text: str, checkout: Path, tmp_path: Path) -> None:
    first, _ = with_a_cache(checkout, tmp_path / "cache")
    spoil(tmp_path / "cache", text)
    second, anew = with_a_cache(checkout, tmp_path / "cache")
    assert (second, anew) == (first, names(checkout))


def test_rows_that_are_no_results_are_left_out(checkout: Path, tmp_path: Path) -> None:
    first, _ = with_a_cache(checkout, tmp_path / "cache")
    for file in (tmp_path / "cache").glob("*/*.json"):
        kept = json.loads(file.read_text())
        for number, row in enumerate(kept["files"].values()):
            row[2] = [[], [[["AMP101"]]], ["AMP101", [], []], [[[]], [], [], None]][number % 4]
        file.write_text(json.dumps(kept))
    second, anew = with_a_cache(checkout, tmp_path / "cache")
    assert second == first
    assert anew == names(checkout)


def test_a_cache_that_cannot_be_written_costs_nothing(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    done = amplint("check", str(checkout), "--cache-dir", str(tmp_path / "taken" / "below"))
    assert done == amplint("check", str(checkout), "--no-cache")


def test_two_runs_at_once(checkout: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "amplint", "check", str(checkout), "--output-format=json"]
    command += ["--cache-dir", str(tmp_path / "cache")]
    runs = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    said = [run.communicate()[0] for run in runs]
    assert said[0] == said[1]
    assert subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False).stdout == said[0]
    assert not list((tmp_path / "cache").glob("*/unfinished*"))


def test_clean_removes_results_and_nothing_else(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    amplint("check", str(checkout), "--cache-dir", str(cache))
    (cache / "mine.txt").write_text("kept")
    done = amplint("clean", "--cache-dir", str(cache))
    assert (done.status, done.stderr) == (0, f"amplint: removed 1 file from {cache}\n")
    assert sorted(path.name for path in cache.iterdir()) == ["CACHEDIR.TAG", "mine.txt"]
    assert amplint("clean", "--cache-dir", str(cache)).stderr == f"amplint: {cache} holds nothing to remove\n"
    (cache / "mine.txt").unlink()
    amplint("check", str(checkout), "--cache-dir", str(cache))
    amplint("clean", "--cache-dir", str(cache))
    assert not cache.exists()


def test_results_of_another_amplint_go_in_time(tmp_path: Path) -> None:
    for name in ("results-old", "results-recent"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / "results-old", (LONG_AGO, LONG_AGO))
    Store(tmp_path).write("key", {"files": {}})
    assert not (tmp_path / "results-old").exists()
    assert (tmp_path / "results-recent").exists()
    assert Store(tmp_path).read("key") == {"files": {}}
    assert clean(tmp_path) == 1


def test_every_kind_of_finding_comes_back_as_it_was() -> None:
    found = [r for r in check_files(tasks_in(ROOT / "fixtures"), 1) if r.findings]
    assert len({finding.code for result in found for finding in result.findings}) > 20
    for result in found:
        assert result_of(result.path, json.loads(json.dumps(record_of(result)))) == result


def test_a_run_of_few_files_keeps_nothing(checkout: Path, tmp_path: Path) -> None:
    few = [str(checkout / "package" / name) for name in sorted(PACKAGE)[: LEAST_FILES - 1]]
    amplint("check", *few, "--cache-dir", str(tmp_path / "cache"))
    assert not (tmp_path / "cache").exists()
