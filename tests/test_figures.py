"""benchmarks/figures: what benchmarks keep, and the page that is made of it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

import speed  # noqa: E402
from ecosystem.releases import Release  # noqa: E402
from figures import results  # noqa: E402
from figures.command import PAGE, main  # noqa: E402
from figures.page import page, shown  # noqa: E402
from figures.results import load, save  # noqa: E402

import amplint  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "python benchmarks/made_up --figures"


def test_the_page_is_made_of_what_is_kept() -> None:
    kept = load()
    assert kept
    assert PAGE.read_text(encoding="utf-8") == page(kept), "run python benchmarks/figures"


def test_a_result_is_read_as_it_was_kept_with_version_and_date(tmp_path: Path) -> None:
    figures = {"found": (3, 4), "seconds": 1.5, "by rule": {"AMP101": {"found": (1, 2), "why": "a text"}}}
    made = save("made-up", COMMAND, about="Something.", seen=figures, first_sight={"found": (0, 4)}, folder=tmp_path)
    assert load(tmp_path) == [made]
    assert made.seen == figures
    assert re.fullmatch(rf"{re.escape(amplint.__version__)}( \([0-9a-f]+\+?\))?", made.version)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made.date)


def test_the_page_sets_seen_and_first_sight_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_rule = {"AMP101": {"found": (1, 2)}, "AMP102": {"lost": 7}}
    save("b", COMMAND, about="Bugs.", seen={"found": (3, 4)}, first_sight={"found": (0, 4), "lines": 12345},
         folder=tmp_path)  # fmt: skip
    save("a", COMMAND, about="Alarms.", seen={"by rule": by_rule}, folder=tmp_path)
    target = tmp_path / "figures.md"
    options = ["--results", str(tmp_path), "--page", str(target)]
    assert main(options) == 0
    assert "written" in capsys.readouterr().out
    text = target.read_text()
    first, second = text.split("\nb\n-\n")
    assert "| | seen | first sight |\n|---|---:|---:|\n| found | 3 of 4 (75%) | 0 of 4 (0%) |\n" in second
    assert "| lines |  | 12,345 |\n" in second
    assert "**by rule** (seen)\n\n| | found | lost |\n|---|---:|---:|\n| AMP101 | 1 of 2 (50%) |  |\n" in first
    assert main(options) == 0
    assert "as before" in capsys.readouterr().out


@pytest.mark.parametrize("value", [(3, 2), (1, 2, 3), None, [1, 2], {"row": 1}])
def test_what_the_page_cannot_show_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(ValueError, match="no figure"):
        save("made-up", COMMAND, about="Something.", seen={"found": value}, folder=tmp_path)  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())


def test_the_speed_is_kept_of_the_pinned_releases_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {}
    monkeypatch.setattr(results, "save", lambda name, command, *, about, seen: kept.update({name: seen}))
    monkeypatch.setattr(speed, "listed", lambda path: [Release("one", "1.0")])
    monkeypatch.setattr(speed, "cost", lambda command: speed.Cost(6.0 if "amplint" in command else 1.5, 50))
    (tmp_path / "one-1.0").mkdir()
    (tmp_path / "one-1.0" / "file.py").write_text("x = 1\ny = 2\n")
    asked = ["--cache", str(tmp_path), "--figures", "--runs", "1", "--torchfix-runs", "0"]
    assert speed.main(asked) == 0
    row = {"lines": 2, "ast.parse": 1.5, "amplint": 6.0, "times ast.parse": 4.0, "megabytes": 50}
    assert kept["speed"] == {"packages": 1, "CPU seconds": {"one": row}}
    with pytest.raises(SystemExit):
        speed.main([*asked, "--list", "other.txt"])
    assert "--figures are those of speed.txt" in capsys.readouterr().err


def test_a_share_of_nothing_is_none() -> None:
    assert shown((0, 0)) == "none"


def test_a_folder_without_figures_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--results", str(tmp_path), "--page", str(tmp_path / "page.md")]) == 2
    assert "holds no figures" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()
