"""benchmarks/judged --fresh: a round is drawn from made-up packages, judged by two readers, and counted."""

from __future__ import annotations

import json
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

from amplint.judge.preview import Kind

BENCHMARKS = str(ROOT / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from judged import blind, kinds, pool  # noqa: E402
from judged.command import main  # noqa: E402
from judged.rounds import Rounds  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

WRITES = """\
import torch


class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 4)

    def forward(self, x):
        out = torch.zeros(4, 4)
        out[torch.arange(2)] = self.project(x)
        out[torch.arange(3)] = self.project(x)
        return out
"""
OLD = "import torch\n\n\ndef step(model, x):\n    with torch.cuda.amp.autocast():\n        return model(x)\n"


def wheel(index: Path, name: str, source: str, *, top: str = "") -> None:
    with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{top or name}/model.py", source)
        info = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }
        for file, text in info.items():
            archive.writestr(f"{name}-1.0.dist-info/{file}", text)


@pytest.fixture
def rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pool of packages of a local index, one of which is none, and one that the project has used."""
    index, folder = tmp_path / "index", tmp_path / "rounds"
    index.mkdir()
    folder.mkdir()
    for name, source in {"made_up_one": WRITES, "made_up_two": WRITES + OLD, "made_up_none": "X = 1\n"}.items():
        wheel(index, name, source)
    (folder / "pool.txt").write_text("# a pool\nmade-up-one\nmade-up-two\nmade-up-none\nmade-up-gone\ntimm\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return folder


def fresh(rounds: Path, *options: str) -> int:
    return main(["--fresh", "--rounds", str(rounds), *options])


def drawn(rounds: Path, tmp_path: Path, *options: str, name: str = "first", count: int = 3) -> list[dict[str, Any]]:
    """The rows of a round, as its readers get them."""
    how = ["--drawn", name, "--count", str(count), "--packages", "2", "--most", "2", "--checked", "1", "--jobs", "1"]
    assert fresh(rounds, "--draw", str(tmp_path / name), *how, *options) == 0
    return [json.loads(line) for line in (tmp_path / name / "rows.jsonl").read_text().splitlines()]


def judged(path: Path, rows: list[dict[str, Any]], *verdicts: str) -> Path:
    said = [row | {"verdict": verdict, "reason": "ran it"} for row, verdict in zip(rows, verdicts, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in said))
    return path


def test_a_round_is_drawn_from_what_nothing_has_used(
    rounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = drawn(rounds, tmp_path)
    said = capsys.readouterr()
    assert "first: 3 findings from 2 packages" in said.out
    assert "used before, in ecosystem/releases.txt: timm" in said.err
    assert "cannot download made-up-gone" in said.err
    assert {row["package"] for row in rows} == {"made-up-one", "made-up-two"}
    assert {(row["code"], row["verdict"], row["reason"]) for row in rows} >= {("AMP105", "", ""), ("AMP601", "", "")}
    kept = Rounds(rounds).load("first")
    assert [(one.place.package, one.place.line, one.code) for one in kept] == [
        (row["package"], row["line"], row["code"]) for row in rows
    ]
    assert all(not one.verdicts and one.amplint for one in kept)
    assert (rounds / "drawn.txt").read_text() == "first made-up-one==1.0\nfirst made-up-two==1.0\n"
    assert fresh(rounds, "--draw", str(tmp_path / "again"), "--drawn", "first") == 2
    assert fresh(rounds, "--draw", str(tmp_path / "again"), "--drawn", "second", "--jobs", "1") == 2
    said = capsys.readouterr()
    assert "there is a round first already" in said.err
    assert "used before, in drawn.txt: made-up-one, made-up-two" in said.err
    assert "the pool is too small: 0 of 120 findings, from 0 packages of 1 that were checked" in said.err


def test_a_fork_of_what_was_used_is_left_out(rounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel(tmp_path / "index", "made_up_fork", WRITES, top="timm")
    (rounds / "pool.txt").write_text("made-up-fork\n")
    assert fresh(rounds, "--draw", str(tmp_path / "first"), "--jobs", "1") == 2
    said = capsys.readouterr().err
    assert "made-up-fork-1.0 holds the modules of what was used before: timm" in said
    assert "from 0 packages of 0 that were checked" in said


def test_kinds_in_preview_are_a_round_of_their_own(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pool, "is_back", lambda code, *_: code == "AMP601")
    rows = drawn(rounds, tmp_path, "--preview", "5", count=2)
    assert [row["code"] for row in rows] == ["AMP105", "AMP105"]
    assert "first-preview: 1 findings from 1 packages" in capsys.readouterr().out
    back = [json.loads(line) for line in (tmp_path / "first" / "preview.jsonl").read_text().splitlines()]
    assert [(row["package"], row["code"]) for row in back] == [("made-up-two", "AMP601")]
    assert [one.code for one in Rounds(rounds).load("first-preview")] == ["AMP601"]
    assert "first-preview made-up-two==1.0\n" in (rounds / "drawn.txt").read_text()


def test_a_round_of_what_some_rules_find_in_preview_alone(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pool, "is_back", lambda code, *_: code == "AMP105")
    rows = drawn(rounds, tmp_path, "--only", "AMP105", "--only", "AMP601", count=2)
    assert [row["code"] for row in rows] == ["AMP105"] * 2
    assert "first-preview: 2 findings from 2 packages" in capsys.readouterr().out
    assert Rounds(rounds).names() == ["first-preview"]
    with pytest.raises(SystemExit):
        fresh(rounds, "--draw", str(tmp_path / "again"), "--only", "AMP105", "--preview", "5")
    assert "--only draws a round by itself" in capsys.readouterr().err


def test_a_round_of_repositories_that_lie_unpacked(rounds: Path, tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    for name, source in {"ann__steps-1a2b": OLD, "bob__writes-3c4d": WRITES, "cyd__timm-5e6f": OLD}.items():
        (trees / name).mkdir(parents=True)
        (trees / name / "train.py").write_text(source)
    rows = drawn(rounds, tmp_path, "--unpacked", str(trees), count=2)
    assert {(row["package"], row["release"]) for row in rows} == {("ann/steps", "1a2b"), ("bob/writes", "3c4d")}
    assert (rounds / "drawn.txt").read_text() == "first ann/steps==1a2b\nfirst bob/writes==3c4d\n"


def test_what_is_told_no_longer_is_marked(rounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = tmp_path / "trees"
    for name in ("ann__steps-1a2b", "bob__steps-3c4d"):
        (trees / name).mkdir(parents=True)
        (trees / name / "train.py").write_text(OLD)
    drawn(rounds, tmp_path, "--unpacked", str(trees), count=2)
    capsys.readouterr()
    assert fresh(rounds, "--again", str(trees)) == 0
    assert capsys.readouterr().out == "first: 0 of 2 findings are told no longer\n"
    assert [one.gone for one in Rounds(rounds).load("first")] == ["", ""]
    (trees / "ann__steps-1a2b" / "train.py").write_text(OLD.replace("cuda.amp.autocast()", 'autocast("cuda")'))
    (trees / "bob__steps-3c4d").rename(trees / "elsewhere")
    assert fresh(rounds, "--again", str(trees)) == 0
    assert capsys.readouterr().out == "first: 1 of 1 findings are told no longer\n"
    assert [bool(one.gone) for one in Rounds(rounds).load("first")] == [True, False]


def test_a_kind_is_back_for_where_it_holds_and_how_sure_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind("AMP104", True, "likely", "error", 0.2, 9)
    monkeypatch.setattr(kinds, "of_rule", lambda code: [kind] if code == "AMP104" else [])
    assert kinds.is_back("AMP104", ["fp16", "bf16"], "likely", "error")
    assert not kinds.is_back("AMP104", ["fp16", "bf16"], "likely", "warning")
    assert not kinds.is_back("AMP104", ["fp16", "bf16"], "proven", "error")
    assert not kinds.is_back("AMP104", ["fp16", "autocast-fp16"], "likely", "error")
    assert not kinds.is_back("AMP105", ["fp16"], "likely", "error")


def test_an_interrupted_draw_goes_on_with_the_same_amplint_only(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--count", "9", "--packages", "3", "--jobs", "1", "--drawn", "first"]
    assert fresh(rounds, "--draw", str(tmp_path / "first"), *few) == 2
    assert "too small" in capsys.readouterr().err
    monkeypatch.setattr(pool, "check", None)
    assert len(drawn(rounds, tmp_path)) == 3
    (rounds / "drawn.txt").unlink()
    (rounds / "fresh" / "first.jsonl").unlink()
    (tmp_path / "first" / "amplint.txt").write_text("0.0.1")
    assert fresh(rounds, "--draw", str(tmp_path / "first"), *few) == 2
    assert "was begun with amplint 0.0.1" in capsys.readouterr().err


def test_two_readers_are_counted_alone_and_pooled(
    rounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, versions, abouts = {}, {}, []

    def save(name: str, how: str, *, about: str, first_sight: dict[str, Any], of: str | None = None) -> None:
        kept[name], versions[name] = first_sight, of
        abouts.append(about)

    monkeypatch.setattr(blind, "save", save)
    rows = drawn(rounds, tmp_path, "--figures")
    assert (kept["ecosystem-fresh"]["packages"], kept["ecosystem-fresh"]["findings of AMP6xx"]) == (3, 1)
    assert kept.pop("ecosystem-fresh")["findings per 10,000 lines"] > 100
    ann = judged(tmp_path / "ann.jsonl", rows, "right", "right", "wrong")
    bob = judged(tmp_path / "bob.jsonl", rows, "right", "wrong", "arguable")
    with pytest.raises(SystemExit):
        fresh(rounds, "--import", str(ann), "ann", "--figures")
    assert fresh(rounds, "--import", str(ann), "ann") == 0
    assert fresh(rounds, "--figures") == 0
    assert abouts[-1].endswith("One reader alone judged the round of first.")
    assert fresh(rounds, "--import", str(bob), "bob") == 0
    assert "first: 3 of 3 findings judged by bob" in capsys.readouterr().out
    assert fresh(rounds, "--figures") == 0
    assert "One reader" not in abouts[-1]
    said = capsys.readouterr().out.splitlines()
    table = {" ".join(words[:-4]): words[-4:] for words in map(str.split, said) if len(words) > 4}
    assert table["reader ann"] == ["3", "66.7", "0.0", "33.3"]
    assert table["reader bob"] == ["3", "33.3", "33.3", "33.3"]
    assert table["pooled"] == ["3", "50.0", "16.7", "33.3"]
    assert "judged twice: 3, 1 with the same verdict, 1 right for one and wrong for the other" in said
    ((title, shown),) = kept["judged-fresh"].items()
    assert title == f"round of first, {versions['judged-fresh']}"
    assert shown["pooled"] == {"judged": 3, "right": "50%", "arguable": "17%", "wrong": "33%"}
    assert sum(shown[code]["judged"] for code in ("AMP105", "AMP601")) == 3


def test_a_readers_file_that_does_not_fit_changes_nothing(
    rounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = drawn(rounds, tmp_path)
    before = (rounds / "fresh" / "first.jsonl").read_text()
    other = [*rows[:2], rows[2] | {"line": 999}]
    for wrong, told in (
        (judged(tmp_path / "a.jsonl", rows, "right", "true", "wrong"), "needs a verdict of right, wrong, arguable"),
        (judged(tmp_path / "b.jsonl", other, "right", "right", "right"), "not drawn in this round"),
        (tmp_path / "rounds" / "pool.txt", "has a row that is no judgement"),
    ):
        assert fresh(rounds, "--import", str(wrong), "ann") == 2
        assert told in capsys.readouterr().err
    assert (rounds / "fresh" / "first.jsonl").read_text() == before
    assert fresh(rounds, "--import", str(judged(tmp_path / "c.jsonl", rows[:1], "right")), "ann") == 0
    assert fresh(rounds, "--import", str(judged(tmp_path / "d.jsonl", rows[:1], "wrong")), "ann") == 2
    assert "has judged made-up-one" in capsys.readouterr().err


def test_without_a_round_there_is_nothing_to_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fresh(tmp_path) == 2
    assert "there is no round yet" in capsys.readouterr().err
