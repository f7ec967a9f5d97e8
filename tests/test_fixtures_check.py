"""The five incidents through the real command: found where marked, explained, fixed, and then they run."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import Completed, amplint
from test_fixtures_run import FOLDERS, each_fixture, expectations, load, reproduce

if TYPE_CHECKING:
    import pytest


def findings(*arguments: str) -> list[dict[str, object]]:
    done: Completed = amplint("check", "--isolated", "--exit-zero", "--output-format", "json", *arguments)
    assert done.status == 0, done.stderr
    listed: list[dict[str, object]] = json.loads(done.stdout)
    return listed


def rows(listed: list[dict[str, object]]) -> dict[int, list[str]]:
    """The codes found on each row, those of a finding on the rows that it names in ``also`` too."""
    found: dict[int, list[str]] = {}
    for finding in listed:
        also = finding["also"]
        assert isinstance(also, list)
        for place in (finding, *also):
            found.setdefault(place["location"]["row"], []).append(str(finding["code"]))
    return {row: sorted(codes) for row, codes in sorted(found.items())}


@each_fixture
def test_failing_form_is_found_where_it_is_marked(folder: Path) -> None:
    path = folder / "failing.py"
    wanted = {row: sorted(codes) for row, codes in expectations(path).items()}
    assert rows(findings(str(path))) == wanted


@each_fixture
def test_fixed_form_is_silent(folder: Path) -> None:
    assert findings(str(folder / "fixed.py")) == []


@each_fixture
def test_every_crash_names_its_causes(folder: Path) -> None:
    for finding in findings(str(folder / "failing.py")):
        if finding["severity"] == "error":
            assert finding["causes"], finding["code"]


@each_fixture
def test_fixes_cure_the_program(folder: Path, tmp_path: Path) -> None:
    for form in ("failing.py", "fixed.py"):
        path = tmp_path / form
        shutil.copy(folder / form, path)
        amplint("check", "--isolated", "--fix", "--unsafe-fixes", "--exit-zero", str(path))
        once = path.read_bytes()
        ast.parse(once)
        amplint("check", "--isolated", "--fix", "--unsafe-fixes", "--exit-zero", str(path))
        assert path.read_bytes() == once
        reproduce(load(path))


@each_fixture
def test_fixes_leave_the_rest_alone(folder: Path, tmp_path: Path) -> None:
    """Every line that no edit touches is the same, byte for byte."""
    path = tmp_path / "failing.py"
    shutil.copy(folder / "failing.py", path)
    before = path.read_bytes().splitlines(keepends=True)
    touched = {row for finding in findings(str(path)) for row in _edited(finding)}
    amplint("check", "--isolated", "--fix", "--exit-zero", str(path))
    after = path.read_bytes().splitlines(keepends=True)
    untouched = [line for row, line in enumerate(before, start=1) if row not in touched]
    remaining = iter(after)
    assert all(line in remaining for line in untouched)


def _edited(finding: dict[str, object]) -> set[int]:
    fix = finding["fix"]
    if not isinstance(fix, dict):
        return set()
    return {row for edit in fix["edits"] for row in range(edit["location"]["row"], edit["end_location"]["row"] + 1)}


def test_a_file_alone_and_in_its_folder_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "norm.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Norm(nn.Module):\n    def forward(self, x):\n"
        "        return x.float() * 2\n"
    )
    (package / "model.py").write_text(
        "from torch import nn\nfrom .norm import Norm\n\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.norm = Norm()\n        self.proj = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        return self.proj(self.norm(x))\n"
    )
    for folder in FOLDERS:
        shutil.copy(folder / "failing.py", package / f"{folder.name}.py")
    monkeypatch.chdir(package)
    together = findings(".")
    assert {Path(str(f["filename"])).name for f in together} >= {"model.py"}
    for path in sorted(package.glob("*.py")):
        alone = findings(path.name)
        assert alone == [f for f in together if f["filename"] == str(path)]
