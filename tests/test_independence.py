"""Findings do not depend on the way of calling: benchmarks/independence.py, on a made-up package."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from independence import FIXES, WAYS, Compared, Release, compared, fixes_compared, main

from amplint.engine import Options, check_file
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n"
LAYER = "        super().__init__()\n        self.layer = nn.Linear(4, 4)\n\n"
FILES = {
    "base.py": """\
class Base:
    @classmethod
    def from_pretrained(cls, name):
        return cls(name)
""",
    "block.py": f"""\
{HEAD}from .base import Base

class Loaded(Base):
    pass

class Block(nn.Module):
    def __init__(self):
{LAYER}    def forward(self, x, table):
        return torch.matmul(self.layer(x), table)
""",
    "user.py": f"""\
{HEAD}from .block import Block

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.register_buffer("table", torch.ones(4, 4, dtype=torch.float32))

    def forward(self, x):
        return self.block(x, self.table)
""",
    "larger.py": f"""\
{HEAD}from .block import Loaded

class Loads(nn.Module):
    def __init__(self):
{LAYER}        self.part = Loaded(4)

    def forward(self, x):
        return torch.matmul(self.layer(x), x.float())
{"# checked before the smaller ones" * 20}
""",
    "old.py": """\
import torch

def step(model, batch):
    with torch.cuda.amp.autocast():
        return model(batch)
""",
    "deep/more.py": f"""\
{HEAD}class More(nn.Module):
    def __init__(self):
{LAYER}    def forward(self, x):
        return torch.matmul(self.layer(x), x.float())
""",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "sources" / "made_up-1.0" / "made_up"
    for name, text in {"__init__.py": "", "deep/__init__.py": "", **FILES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def told(path: Path) -> list[str]:
    result = check_file(path, Options(load_rules(), pedantic=True))
    assert not result.failures
    return [f"{finding.code} {finding.certainty.value}" for finding in result.findings]


def test_a_package_in_every_way(package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text("made-up==1.0\n")
    places = ["--list", str(tmp_path / "list"), "--sources", str(package.parents[1]), "--cache", str(tmp_path)]
    status = main([*places, "--package", "made-up", "--pedantic"])
    head, row, *differences = capsys.readouterr().out.splitlines()
    assert head.split("  ", 1)[1].strip() == "  ".join((*WAYS, FIXES))
    assert row.split() == ["made-up-1.0", *(4 * ["4", "equal"]), "1", "equal", *(2 * ["4", "equal"]), "1", "equal"]
    assert (status, differences) == (0, [])


def test_nothing_compared_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text("made-up==1.0\n")
    assert main(["--list", str(tmp_path / "list"), "--cache", str(tmp_path)]) == 2
    assert "none of these packages" in capsys.readouterr().err


def test_differences_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.py"

    def found(row: int, **other: Any) -> dict[str, Any]:
        place = {
            "filename": str(path),
            "location": {"row": row, "column": 1},
            "end_location": {"row": row, "column": 9},
        }
        return {**place, "code": "AMP102", "message": "a message", "certainty": "likely", **other}

    release = Release(tmp_path, [path], [found(1), found(2), found(3)], ())
    result = compared(release, ([path], [found(1), found(2, certainty="proven"), found(4)]))
    assert (result.same, result.all) == (1, 4)
    assert result.different == [
        "a.py:2:1 AMP102 certainty: likely is proven",
        "a.py:3:1 AMP102 only in the whole: a message",
        "a.py:4:1 AMP102 only this way: a message",
    ]
    assert compared(release, ([], [])).all == 0


def test_another_diff_is_told(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"block.py": "+++ b/block.py\n-1\n+2\n", "user.py": "+++ b/user.py\n-1\n+3\n"}
    answers = iter([whole, {**whole, "user.py": "+++ b/user.py\n-1\n+4\n", "more.py": "+++ b/more.py\n-1\n+5\n"}])
    monkeypatch.setattr(Release, "diffs", lambda *_, **__: next(answers))
    told = ["more.py: its diff is another one", "user.py: its diff is another one"]
    assert fixes_compared(Release(package, [], [], ())) == Compared(1, told)


def test_classes_of_another_file_count_whether_or_not_they_were_asked_for(package: Path) -> None:
    assert told(package / "user.py") == ["AMP110 likely"]
    told(package / "larger.py")
    assert told(package / "user.py") == ["AMP110 likely"]


def test_another_file_that_does_not_parse_as_a_whole_says_nothing(package: Path) -> None:
    with (package / "block.py").open("a") as file:
        file.write("\ndef broken(:\n")
    assert told(package / "user.py") == []


def test_modules_of_the_current_folder_are_not_imported(package: Path) -> None:
    (package / "json.py").write_text("raise SystemExit('user code ran')\n")
    command = [sys.executable, "-m", "amplint", "check", "user.py", "--isolated", "--pedantic"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=package)
    assert (done.returncode, "AMP110" in done.stdout) == (1, True), done.stderr
