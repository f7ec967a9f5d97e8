"""benchmarks/ecosystem: from releases to findings, their difference, and a draw of them, on made-up packages."""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from ecosystem import difference, drawing, table  # noqa: E402
from ecosystem.command import main  # noqa: E402
from ecosystem.releases import Release, Shelf, listed  # noqa: E402
from ecosystem.result import Checked, Found, load, save  # noqa: E402
from wheels import DownloadError  # noqa: E402

from amplint.plugins import load_rules  # noqa: E402

MODEL = """\
import torch


def write(x: torch.Tensor):
    out = torch.zeros(4, 4, device=x.device)
    out = torch.nn.functional.linear(out, x)
    return out


def step(model, x):
    with torch.cuda.amp.autocast():
        return model(x)


class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return write(self.project.weight)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with one unpacked release: a package that gives a layer float32 and uses an old name."""
    package = tmp_path / "sources" / "made_Up-1.0" / "made_up"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text(MODEL)
    return tmp_path / "sources"


def run(tmp_path: Path, requirements: str, *options: str) -> tuple[int, dict[str, Any]]:
    (tmp_path / "list").write_text(requirements)
    report = tmp_path / "report.json"
    report.unlink(missing_ok=True)
    where = ["--list", str(tmp_path / "list"), "--cache", str(tmp_path / "cache"), "--json", str(report)]
    status = main([*where, "--jobs", "1", *options])
    return status, json.loads(report.read_text()) if report.exists() else {}


def found(path: str = "a.py", line: int = 1, code: str = "AMP105", **other: Any) -> Found:
    return replace(Found(path, line, code, "error", "likely", ("bf16",), "a message"), **other)


def checked(package: str, *findings: Found, lines: int = 1000) -> Checked:
    return Checked(Release(package, "1.0"), 1, lines, 1.0, 1.0, findings)


def test_a_release_is_checked_and_counted(tmp_path: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = run(tmp_path, "made.up==1.0\n", "--sources", str(sources), "--extend-select", "AMP103")
    (release,) = report["releases"]
    places = [(finding["path"], finding["line"], finding["code"]) for finding in release["findings"]]
    assert (status, places) == (0, [("made_up/model.py", 6, "AMP103"), ("made_up/model.py", 11, "AMP601")])
    assert (release["files"], release["lines"]) == (2, 21)
    head, row, total, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:6] == ["files", "lines", "findings", "AMP6xx", "per", "10,000"]
    assert row.split()[:6] == ["made.up-1.0", "2", "21", "2", "1", "476.2"]
    assert row.endswith("AMP103 1, AMP601 1")
    assert total.split()[:6] == ["all", "2", "21", "2", "1", "476.2"]


def test_the_figures_are_the_totals_and_a_row_for_each_release_and_rule() -> None:
    api = found("b.py", code="AMP601", certainty="proven")
    kept = table.figures([checked("p", found(), found(line=2)), checked("q", api, lines=3000)])
    assert (kept["findings"], kept["findings per 10,000 lines"], kept["lines"]) == (3, 5.0, 4000)
    assert [(name, row["findings"]) for name, row in kept["releases"].items()] == [("p-1.0", 2), ("q-1.0", 1)]
    assert kept["rules"]["AMP105"] == {"findings": 2, "releases": 1, "errors": 2, "proven": 0}
    assert kept["rules"]["AMP601"] == {"findings": 1, "releases": 1, "errors": 1, "proven": 1}


def test_the_figures_are_of_the_whole_list_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, "made-up==1.0\n", "--figures", "--package", "made-up")
    assert "the whole list" in capsys.readouterr().err


def test_a_rule_that_is_off_can_be_added(tmp_path: Path, sources: Path) -> None:
    off = next(rule for rule in load_rules() if not rule.default and rule.bad[0].device == "cuda")
    (sources / "made_Up-1.0" / "made_up" / "model.py").write_text(off.bad[0].source)
    for options in ((), ("--extend-select", off.code)):
        _, report = run(tmp_path, "made-up==1.0\n", "--sources", str(sources), *options)
        codes = {finding["code"] for finding in report["releases"][0]["findings"]}
        assert (off.code in codes) is bool(options)


def test_a_change_of_the_findings_is_told(tmp_path: Path, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "made-up==1.0\n", "--sources", str(sources), "--extend-select", "AMP103")
    earlier = tmp_path / "earlier.json"
    (tmp_path / "report.json").rename(earlier)
    model = sources / "made_Up-1.0" / "made_up" / "model.py"
    model.write_text(
        MODEL.replace("(out, x)", "(out.to(x.dtype), x)").replace("return model(x)", "return model(x.half())")
    )
    options = ("--sources", str(sources), "--against", str(earlier), "--extend-select", "AMP103")
    capsys.readouterr()
    run(tmp_path, "made-up==1.0\n", *options)
    output = capsys.readouterr().out.splitlines()
    (told,) = (line for line in output if line.startswith(("+ ", "- ", "~ ")))
    assert told.startswith("- AMP103 made-up-1.0 made_up/model.py:6  error, ")
    assert output[-1] == "0 new, 1 gone, 0 judged otherwise"


def test_difference_by_place_and_verdict() -> None:
    same = found("same.py", message="one")
    before = [
        checked("p", same, found("twice.py"), found("certainty.py"), found("gone.py")),
        checked("only-before"),
    ]
    after = [
        checked("p", replace(same, message="another"), found("twice.py"), found("twice.py", message="b")),
        checked("only-after", found("new-package.py")),
    ]
    after[0] = replace(
        after[0], findings=(*after[0].findings, found("certainty.py", certainty="proven"), found("a.py", 3, "AMP104"))
    )
    changes = [(change.mark, change.found.code, change.found.path) for change in difference.changes(before, after)]
    assert changes == [
        ("+", "AMP104", "a.py"),
        ("~", "AMP105", "certainty.py"),
        ("-", "AMP105", "gone.py"),
        ("+", "AMP105", "twice.py"),
    ]
    told = difference.lines(before, after)
    assert "~ AMP105 p-1.0 certainty.py:1  error, likely, bf16 -> error, proven, bf16" in told
    assert "AMP105  +1  -1  ~1" in told
    assert told[-3:] == [
        "2 new, 1 gone, 1 judged otherwise",
        "not compared: only-after-1.0 is in this result only",
        "not compared: only-before-1.0 is in the earlier result only",
    ]


def test_of_an_environment_only_the_recorded_files_are_read(tmp_path: Path) -> None:
    environment = tmp_path / "site-packages"
    info = environment / "Made_up-1.0.dist-info"
    info.mkdir(parents=True)
    (environment / "made_up").mkdir()
    for name in ("__init__.py", "model.py", "left_behind.py"):
        (environment / "made_up" / name).write_text(MODEL)
    record = ["made_up/__init__.py,sha256=x,1", "made_up/model.py,,", "made_up/table.bin,,", "../../bin/made_up.py,,"]
    (info / "RECORD").write_text("\n".join(record))
    folder = Shelf(tmp_path / "cache", [environment]).folder(Release("made-up", "1.0"))
    assert sorted(path.name for path in folder.rglob("*.py")) == ["__init__.py", "model.py"]
    assert folder.parent == tmp_path / "cache"
    assert [path.name for path in folder.parent.iterdir()] == ["made-up-1.0"]


def test_a_wheel_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "made_up-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made_up/model.py", MODEL)
        archive.writestr("made_up-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
        archive.writestr(
            "made_up-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("made_up-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    for _ in range(2):
        folder = Shelf(tmp_path / "cache").folder(Release("made-up", "1.0"))
        assert [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")] == ["made_up/model.py"]
        wheel.unlink(missing_ok=True)
    with pytest.raises(DownloadError, match="cannot download another"):
        Shelf(tmp_path / "cache").folder(Release("another", "1.0"))
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["made-up-1.0"]


def test_what_cannot_be_checked_is_told_and_the_rest_is(
    tmp_path: Path, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sources / "hollow-2.0").mkdir()
    requirements = "hollow==2.0\nmade-up==1.0\n"
    status, report = run(tmp_path, requirements, "--sources", str(sources))
    assert (status, [one["release"]["package"] for one in report["releases"]]) == (1, ["made-up"])
    assert "hollow-2.0 holds no Python file" in capsys.readouterr().err
    assert run(tmp_path, requirements, "--sources", str(sources), "--package", "hollow") == (2, {})
    assert run(tmp_path, requirements, "--package", "made-upp") == (2, {})
    assert "does not list made-upp" in capsys.readouterr().err
    (tmp_path / "other.json").write_text('{"releases": [{"files": 1}]}')
    assert run(tmp_path, requirements, "--read", str(tmp_path / "other.json")) == (2, {})
    assert "other.json is no result" in capsys.readouterr().err


def test_a_kept_result_is_read_and_drawn_from(tmp_path: Path) -> None:
    kept = [checked("p", found("a.py", 7)), checked("q")]
    save(kept, tmp_path / "kept.json")
    assert load(tmp_path / "kept.json") == kept
    rows = tmp_path / "rows.jsonl"
    options = ("--read", str(tmp_path / "kept.json"), "--draw", "5", "--seed", "3", "--rows", str(rows))
    assert run(tmp_path, "", *options)[0] == 0
    (row,) = map(json.loads, rows.read_text().splitlines())
    place = {"package": "p", "release": "1.0", "path": "a.py", "line": 7, "code": "AMP105", "scenarios": ["bf16"]}
    assert row == place | {
        "severity": "error",
        "certainty": "likely",
        "message": "a message",
        "verdict": "",
        "reason": "",
    }
    assert [one["release"]["package"] for one in run(tmp_path, "", *options, "--package", "q")[1]["releases"]] == ["q"]


def test_rules_and_packages_take_turns_in_a_draw() -> None:
    noisy = [found(line=line) for line in range(1, 400)]
    result = [
        checked("large", *noisy, found(code="AMP104")),
        checked("small", found(line=1), found(line=2), found(line=3)),
        checked("other", found(code="AMP601")),
    ]
    drawn = drawing.draw(result, 6, seed=1)
    assert Counter(one.code for _, one in drawn) == {"AMP105": 4, "AMP104": 1, "AMP601": 1}
    assert Counter(release.package for release, one in drawn if one.code == "AMP105") == {"large": 2, "small": 2}
    assert drawing.draw(result[::-1], 6, seed=1) == drawn
    assert set(drawing.draw(result, 4, seed=1)) < set(drawn)
    assert any(drawing.draw(result, 6, seed=seed) != drawn for seed in range(5))
    assert len(drawing.draw(result, 10_000, seed=1)) == 404


def test_no_package_has_more_than_its_share_of_a_draw() -> None:
    many = [found(line=line) for line in range(1, 9)]
    result = [checked("large", *many, found("b.py", code="AMP104")), checked("small", found())]
    drawn = drawing.draw(result, 5, seed=1, most=3)
    assert Counter(release.package for release, _ in drawn) == {"large": 3, "small": 1}
    assert {one.code for release, one in drawn if release.package == "large"} == {"AMP104", "AMP105"}


def test_density_leaves_the_api_out() -> None:
    result = [checked("p", found(), found(code="AMP601"), lines=5000), checked("q", found(line=2), lines=15000)]
    assert table.density(result) == 1.0
    assert table.density([]) == 0.0


def test_the_list_pins_each_package_once() -> None:
    releases = listed()
    assert len(releases) >= 20
    assert [release.package for release in releases] == sorted({release.package for release in releases})
    assert all(release.version[0].isdigit() for release in releases)
