"""benchmarks/corpus: from a clone and a list of rows to figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from corpus.command import main  # noqa: E402
from corpus.exports import ExportError, Exports  # noqa: E402
from corpus.judging import moved  # noqa: E402
from corpus.rows import LISTS, Place, load_cases, load_labels, load_negatives  # noqa: E402
from figures import results  # noqa: E402
from halves import HALVES, half  # noqa: E402

from amplint.plugins import load_rules  # noqa: E402

MADE = "torch.zeros(WIDTH, WIDTH, device=x.device)"
BEFORE = """\
import torch
from .sizes import WIDTH


def forward(x: torch.Tensor):
    out = torch.zeros(WIDTH, WIDTH, device=x.device)
    out = torch.nn.functional.linear(out, x)
    return out


def product(x, weight):
    return x.float().to(torch.float32) @ weight.float()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return product(forward(self.project.weight), self.project.weight)
"""

AFTER = BEFORE.replace("linear(out, x)", "linear(out.to(x.dtype), x)").replace(
    "\n\ndef forward", "\n\n# moved\ndef forward"
)

LABELS = {
    "fp32-constant-operand": ["AMP103"],
    "index-write-mismatch": ["AMP105"],
    "float-cast-before-matmul": ["AMP102", "AMP104"],
}


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder with the clone of the repository ``someone/shapes``: two commits, one file that is not Python."""
    folder = tmp_path / "clones" / "someone" / "shapes"
    package = folder / "shapes"
    package.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (package / "__init__.py").touch()
    (package / "sizes.py").write_text("import torch\n\nWIDTH, DTYPE = 4, torch.bfloat16\n")
    (folder / "notes.txt").write_text("not code\n")
    for text in (BEFORE, AFTER):
        (package / "model.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "a commit")
    return tmp_path / "clones"


def commits(clones: Path) -> list[str]:
    return git(clones / "someone" / "shapes", "rev-list", "--reverse", "HEAD").split()


def row(clones: Path, name: str, label: str, lines: list[int], **other: Any) -> dict[str, Any]:
    before, after = commits(clones)[:2]
    where = {"repo": "someone/shapes", "pre_sha": before, "fix_sha": after, "path": "shapes/model.py", "lines": lines}
    return {
        "id": name,
        "label": label,
        "decidable": "local",
        "post_clean": True,
        "context": "",
        "fix": "",
        **where,
    } | other


def run(tmp_path: Path, clones: Path, cases: list[dict[str, Any]], *options: str) -> tuple[int, dict[str, Any]]:
    before = commits(clones)[0]
    rows = tmp_path / "rows"
    rows.mkdir(exist_ok=True)
    lines = {"id": "idiom", "repo": "someone/shapes", "sha": before, "path": "shapes/model.py", "why_ok": "it is not"}
    negatives = [lines | {"lines": [7]}, lines | {"id": "quiet", "lines": [5, 6]}]
    negatives.append(lines | {"id": "corrected", "lines": [7], "right": ["AMP103"], "corrected": "it raises"})
    (rows / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (rows / "negatives.jsonl").write_text("".join(json.dumps(negative) + "\n" for negative in negatives))
    (rows / "labels.json").write_text(json.dumps(LABELS))
    report = tmp_path / "report.json"
    where = ["--clones", str(clones), "--cache", str(tmp_path / "cache"), "--rows", str(rows), "--json", str(report)]
    told = [] if "--figures" in options else ["--extend-select", "AMP102,AMP103"]
    status = main([*where, *told, *options])
    return status, json.loads(report.read_text())["rows"] if report.exists() else {}


def test_found_before_the_fix_and_gone_or_kept_after_it(
    tmp_path: Path, clones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        row(clones, "cured", "fp32-constant-operand", [9]),
        row(clones, "not-cured", "float-cast-before-matmul", [12]),
        row(clones, "too-far", "fp32-constant-operand", [4]),
        row(clones, "another-label", "float-cast-before-matmul", [7]),
    ]
    options = ("--show", "missed", "--show", "hit", "--show", "kept", "--show", "negatives")
    status, report = run(tmp_path, clones, cases, *options)
    assert status == 0
    found = {case["id"]: (case["found"], case["gone_after_fix"]) for case in report["cases"]}
    assert found == {
        "cured": (True, True),
        "not-cured": (True, False),
        "too-far": (False, None),
        "another-label": (False, None),
    }
    assert {one["id"]: [alarm["code"] for alarm in one["alarms"]] for one in report["negatives"]} == {
        "idiom": ["AMP103"],
        "quiet": [],
        "corrected": [],
    }
    total = report["figures"]["all"]
    assert (total["cases"], total["hits"], total["fixable"], total["fixed"]) == (4, 2, 2, 1)
    assert (total["findings"], total["lines"]) == (2, 21)
    output = capsys.readouterr().out
    assert "missed: 2" in output
    assert "hit: 2" in output
    assert "kept: 1" in output
    assert "1 of 3 flagged" in output
    assert "1 more are rightly found" in output


def test_the_figures_are_kept_for_all_rows(tmp_path: Path, clones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [row(clones, "cured", "fp32-constant-operand", [9]), row(clones, "far", "fp32-constant-operand", [4])]
    kept = {}
    monkeypatch.setattr(results, "save", lambda name, command, *, about, seen: kept.update({name: seen}))
    monkeypatch.setattr("corpus.command._check_options", lambda chosen: ["--extend-select", "AMP103"])
    run(tmp_path, clones, cases, "--figures")
    assert kept["corpus"]["bugs"]["all"]["found"] == (1, 2)
    assert kept["corpus"]["bugs"]["all"]["alone"] == (1, 2)
    assert kept["corpus"]["bugs"]["fp32-constant-operand"]["gone after the fix"] == (1, 1)
    assert kept["corpus"]["look-alikes flagged"] == (1, 3)
    with pytest.raises(SystemExit):
        run(tmp_path, clones, cases, "--figures", "--pedantic")


def test_a_file_alone_lacks_what_its_imports_say(tmp_path: Path, clones: Path) -> None:
    case = row(clones, "write", "fp32-constant-operand", [7])
    _, report = run(tmp_path, clones, [case])
    assert report["cases"][0]["found_alone"]
    folder = clones / "someone" / "shapes"
    (folder / "shapes" / "sizes.py").write_text("import torch\n\n\ndef table():\n    return torch.zeros(4, 4)\n")
    (folder / "shapes" / "model.py").write_text(
        BEFORE.replace("WIDTH\n", "table\n").replace(MADE, "table().to(x.device)")
    )
    git(folder, "commit", "--quiet", "--all", "--message", "a dtype from elsewhere")
    here = commits(clones)[-1]
    case = row(clones, "elsewhere", "fp32-constant-operand", [7], pre_sha=here, fix_sha=here)
    _, report = run(tmp_path, clones, [case])
    assert (report["cases"][0]["found"], report["cases"][0]["found_alone"]) == (True, False)


def test_of_the_kept_half_only_figures_are_told(
    tmp_path: Path, clones: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, clones, [row(clones, "a-row", "fp32-constant-operand", [7])])
    capsys.readouterr()
    monkeypatch.setattr("corpus.command.LISTS", {"kept": tmp_path / "rows"})
    report = tmp_path / "kept.json"
    where = ["--clones", str(clones), "--cache", str(tmp_path / "cache"), "--json", str(report)]
    told = ["--extend-select", "AMP103"]
    assert main([*where, *told, "--show", "hit", "--show", "negatives", "--id", "a-row"]) == 0
    printed = capsys.readouterr().out + report.read_text()
    assert json.loads(report.read_text())["kept"]["figures"]["all"]["hits"] == 1
    assert not any(word in printed for word in ("a-row", "idiom", "model.py"))
    with pytest.raises(SystemExit):
        main([*where, "--list", "kept", "--figures"])


def test_a_cause_on_the_line_is_counted_apart(tmp_path: Path, clones: Path) -> None:
    cases = [row(clones, "made", "fp32-constant-operand", [20]), row(clones, "raises", "fp32-constant-operand", [29])]
    far = BEFORE.replace(f"    out = {MADE}\n", f"    out = {MADE}\n" + "    print()\n" * 9)
    padded = "#\n" * 13 + far
    folder = clones / "someone" / "shapes"
    (folder / "shapes" / "model.py").write_text(padded)
    git(folder, "commit", "--quiet", "--all", "--message", "the constructor is far from the write")
    for case in cases:
        case["pre_sha"] = case["fix_sha"] = commits(clones)[-1]
    status, report = run(tmp_path, clones, cases)
    assert status == 0
    assert {case["id"]: (case["found"], len(case["by_cause"])) for case in report["cases"]} == {
        "made": (False, 1),
        "raises": (True, 0),
    }
    assert report["figures"]["all"]["by_cause"] == 1


def test_rows_are_chosen_by_label_and_id(tmp_path: Path, clones: Path) -> None:
    cases = [
        row(clones, "write", "fp32-constant-operand", [7]),
        row(clones, "product", "float-cast-before-matmul", [12]),
    ]
    _, report = run(tmp_path, clones, cases, "--label", "fp32-constant-operand")
    assert [case["id"] for case in report["cases"]] == ["write"]
    _, report = run(tmp_path, clones, cases, "--id", "product")
    assert [case["id"] for case in report["cases"]] == ["product"]


def test_a_fix_that_left_the_defect_counts_for_recall_only(tmp_path: Path, clones: Path) -> None:
    case = row(clones, "half-way", "float-cast-before-matmul", [12], post_clean=False)
    _, report = run(tmp_path, clones, [case])
    assert (report["figures"]["all"]["hits"], report["figures"]["all"]["fixable"]) == (1, 0)


PRODUCT = """\
import torch


class Product(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, index: torch.Tensor):
        w = self.weight
        out = torch.empty_like(w)
        out[index] = WRITTEN[index]
        return out
"""


def test_what_fails_in_another_scenario_is_another_defect(tmp_path: Path, clones: Path) -> None:
    folder = clones / "someone" / "shapes"
    source = folder / "shapes" / "model.py"
    for written in ("torch.relu(w @ w.T)", "torch.relu(w @ w.T).to(w.dtype).float()"):
        source.write_text(PRODUCT.replace("WRITTEN", written))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "a commit")
    before, after = commits(clones)[-2:]
    case = row(clones, "autocast", "index-write-mismatch", [12], pre_sha=before, fix_sha=after)
    _, report = run(tmp_path, clones, [case])
    [judged] = report["cases"]
    assert [finding["scenarios"] for finding in judged["hits"]] == [["autocast-fp16", "autocast-bf16"]]
    assert judged["gone_after_fix"]


def test_rows_that_cannot_be_had_are_told_of_and_left_out(
    tmp_path: Path, clones: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        row(clones, "here", "fp32-constant-operand", [7]),
        row(clones, "no-clone", "fp32-constant-operand", [7], repo="someone/other"),
        row(clones, "no-path", "fp32-constant-operand", [7], path="shapes/none.py"),
        row(clones, "no-commit", "fp32-constant-operand", [7], pre_sha="0" * 40),
    ]
    status, report = run(tmp_path, clones, cases)
    assert status == 1
    assert [case["id"] for case in report["cases"]] == ["here"]
    complaints = capsys.readouterr().err
    assert "no clone of someone/other" in complaints
    assert "has no shapes/none.py" in complaints
    assert "no clone of someone/shapes with 0000000000" in complaints


@pytest.mark.parametrize("layout", ["someone/shapes", "someone+shapes", "someone+shapes/repo", "shapes"])
@pytest.mark.parametrize("bare", [False, True])
def test_clones_may_lie_in_any_usual_way(tmp_path: Path, clones: Path, layout: str, bare: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    git(folder, "clone", "--quiet", *(["--bare"] if bare else []), str(clones / "someone" / "shapes"), layout)
    before, after = commits(clones)
    exports = Exports(folder, tmp_path / "cache")
    file = exports.file(Place("someone/shapes", before, "shapes/model.py"))
    assert file.read_text() == BEFORE
    assert exports.file(Place("someone/shapes", after, "shapes/model.py")).read_text() == AFTER
    root = file.parents[1]
    assert {str(path.relative_to(root)) for path in root.rglob("*.*")} == {
        "shapes/__init__.py",
        "shapes/sizes.py",
        "shapes/model.py",
    }


def test_what_was_exported_is_used_again(tmp_path: Path, clones: Path) -> None:
    place = Place("someone/shapes", commits(clones)[0], "shapes/model.py")
    file = Exports(clones, tmp_path / "cache").file(place)
    assert Exports(tmp_path / "nothing", tmp_path / "cache").file(place) == file
    with pytest.raises(ExportError):
        Exports(tmp_path / "nothing", tmp_path / "empty").file(place)


@pytest.mark.parametrize(
    ("rows", "old", "new", "places"),
    [
        ({2, 3}, "abcd", "xxabcd", {4, 5}),
        ({2}, "abcd", "aXYcd", {2, 3}),
        ({2}, "abcd", "acd", set()),
        ({2, 3}, "abcd", "abXcd", {2, 3, 4}),
        ({2}, "abcd", "abXcd", {2}),
    ],
    ids=["moved", "replaced", "deleted", "inserted between", "inserted beside"],
)
def test_where_rows_went(rows: set[int], old: str, new: str, places: set[int]) -> None:
    assert moved(rows, old, new) == places


@pytest.mark.parametrize("name", LISTS)
def test_the_list_is_whole(name: str) -> None:
    cases, negatives = load_cases(LISTS[name] / "cases.jsonl"), load_negatives(LISTS[name] / "negatives.jsonl")
    labels = load_labels()
    names = [row.id for row in (*cases, *negatives)]
    assert len(names) == len(set(names))
    assert {case.label for case in cases} <= set(labels)
    assert {case.decidable for case in cases} <= {"local", "file", "cross", "runtime"}
    assert all(row.lines and min(row.lines) >= 1 for row in (*cases, *negatives))
    assert all(bool(row.right) == bool(row.corrected) for row in negatives)
    assert {rule.code[:4] for rule in load_rules()} & {code[:4] for codes in labels.values() for code in codes}


def test_repositories_lie_in_the_half_that_their_name_says_and_in_no_other_list() -> None:
    repositories = {
        name: {
            place.repository
            for place in (
                *(case.before for case in load_cases(folder / "cases.jsonl")),
                *(negative.place for negative in load_negatives(folder / "negatives.jsonl")),
            )
        }
        for name, folder in LISTS.items()
    }
    for name in HALVES:
        assert {half(repository) for repository in repositories[name]} == {name}
        assert not repositories[name] & repositories["seen"]
