"""benchmarks/judged: the figures of judged findings, and that the committed judgements can be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from ecosystem.releases import Release  # noqa: E402
from ecosystem.result import Checked, Found, save  # noqa: E402
from judged import command  # noqa: E402
from judged.command import main  # noqa: E402
from judged.rows import findings, second_verdicts  # noqa: E402

COMMITTED = Path(BENCHMARKS) / "judged"


def written(path: Path, *rows: dict[str, object]) -> Path:
    place = {"drawn": "2026-01-01", "package": "made-up", "release": "1.0", "path": "made_up/a.py"}
    path.write_text("".join(json.dumps(place | row) + "\n" for row in rows))
    return path


def judged(line: int, verdict: str, certainty: str = "likely") -> dict[str, object]:
    said = {"severity": "error", "certainty": certainty, "verdict": verdict, "reason": "run"}
    return {"line": line, "code": "AMP104", **said}


def found(line: int, certainty: str = "likely") -> tuple[Found, ...]:
    return (Found("made_up/a.py", line, "AMP104", "error", certainty, ("bf16",), "operands disagree"),)


def test_verdicts_are_counted_by_rule_and_certainty_and_readers_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [judged(1, "right", "proven"), judged(2, "wrong"), judged(3, "arguable"), judged(4, "right")]
    first = written(tmp_path / "first.jsonl", *rows)
    again = [{"line": 1, "code": "AMP104", "verdict": "defect"}, {"line": 2, "code": "AMP104", "verdict": "defect"}]
    second = written(tmp_path / "second.jsonl", *again)
    save([Checked(Release("made-up", "1.0"), 1, 10, 0.0, 0.0, found(1, "proven"))], tmp_path / "result.json")
    files = ["--findings", str(first), "--second", str(second)]
    assert main([*files, "--show", "wrong"]) == 0
    shown, _, code, proven, *_, twice = capsys.readouterr().out.splitlines()
    assert shown == "wrong: made-up made_up/a.py:2 AMP104 run"
    assert code.split() == ["AMP104", "2", "1", "1", "50.0", "25.0"]
    assert proven.split() == ["proven", "1", "0", "0", "100.0", "0.0"]
    assert twice == "judged twice: 2, 1 with the same verdict, 1 right for one and wrong for the other"
    assert main([*files, "--result", str(tmp_path / "result.json")]) == 0
    *_, all_of_them, gone, _ = capsys.readouterr().out.splitlines()
    assert all_of_them.split() == ["all", "1", "0", "0", "100.0", "0.0"]
    assert gone == "3 of 4 judged findings are no longer reported: 1 right, 1 wrong, 1 arguable"


def test_the_figures_are_of_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path / "first.jsonl", judged(1, "right"), judged(2, "wrong"))
    files = ["--findings", str(first), "--second", str(written(tmp_path / "second.jsonl"))]
    save([Checked(Release("made-up", "1.0"), 1, 10, 0.0, 0.0, found(1) + found(2, "proven"))], tmp_path / "result.json")
    kept = {}
    monkeypatch.setattr(command, "keep", lambda name, how, *, about, seen: kept.update({name: seen}))
    with pytest.raises(SystemExit):
        main([*files, "--figures"])
    assert main([*files, "--figures", "--result", str(tmp_path / "result.json")]) == 0
    assert kept["judged"]["verdicts"]["AMP104"] == {"right": (1, 2), "wrong": (1, 2), "arguable": (0, 2)}
    assert kept["judged"]["verdicts"]["proven"] == {"right": (0, 1), "wrong": (1, 1), "arguable": (0, 1)}


def test_a_finding_that_was_drawn_twice_counts_by_its_later_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [judged(1, "right"), judged(2, "right"), judged(1, "wrong") | {"drawn": "2026-02-02"}]
    files = ["--findings", str(written(tmp_path / "first.jsonl", *rows))]
    files += ["--second", str(written(tmp_path / "second.jsonl"))]

    def counted(*options: str) -> list[str]:
        assert main([*files, *options]) == 0
        return capsys.readouterr().out.splitlines()[-2].split()[1:4]

    assert counted() == ["1", "1", "0"]
    assert counted("--drawn", "2026-01-01") == ["2", "0", "0"]
    assert counted("--drawn", "2026-02-02") == ["0", "1", "0"]
    assert main([*files, "--drawn", "2026-03-03"]) == 2
    assert "there are 2026-01-01, 2026-02-02" in capsys.readouterr().err


def test_a_row_without_a_reason_is_an_error_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(tmp_path / "first.jsonl", judged(1, "right") | {"reason": ""})
    assert main(["--findings", str(first), "--second", str(written(tmp_path / "second.jsonl"))]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "made_up/a.py:1 needs a verdict" in line


def test_at_least_150_findings_are_judged_and_50_of_them_twice() -> None:
    rows = findings(COMMITTED / "findings.jsonl")
    second = second_verdicts(COMMITTED / "second.jsonl")
    assert len(rows) >= 150
    assert len((COMMITTED / "second.jsonl").read_text().splitlines()) >= 50
    assert second.keys() <= {(one.drawn, one.place, one.code) for one in rows}
