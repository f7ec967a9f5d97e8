"""Which files a run looks at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.config import Configurations
from amplint.files import display_path, find_files

if TYPE_CHECKING:
    import pytest


def names(project: Path, *paths: str) -> list[str]:
    configurations = Configurations()
    found = find_files(paths or (".",), configurations)
    assert not found.errors + configurations.errors
    return [file.path.relative_to(project).as_posix() for file in found.files]


def make(project: Path, *files: str) -> None:
    for name in files:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_folders_are_walked_for_python(project: Path) -> None:
    make(project, "b.py", "a/c.py", "a/d.txt", "a/e.pyi", "a.py")
    assert names(project) == ["a/c.py", "a.py", "b.py"]
    assert names(project, "a/d.txt", "a/e.pyi", "b.py", "b.py", ".") == ["a/c.py", "a/d.txt", "a/e.pyi", "a.py", "b.py"]


def test_skipped_folders_apply_below_the_path_only(project: Path) -> None:
    hidden = [".hidden/a.py", "x/__pycache__/a.py", "venv/a.py", "node_modules/a.py", "build/a.py", "x/dist/a.py"]
    make(project, "x/a.py", *hidden)
    assert names(project) == ["x/a.py"]
    assert names(project, ".hidden", "build", "x/dist/a.py") == [".hidden/a.py", "build/a.py", "x/dist/a.py"]


def test_gitignore(project: Path) -> None:
    make(project, "a.py", "gen/b.py", "gen/keep.py", "sub/c_pb2.py", "sub/d.py", "sub/deep/e.py", "sub/deep/d.py")
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("gen/*\n*_pb2.py\n!gen/keep.py\n")
    (project / "sub" / ".gitignore").write_text("/d.py\ndeep/e.py\n")
    assert names(project) == ["a.py", "gen/keep.py", "sub/deep/d.py"]
    assert names(project, "sub") == ["sub/deep/d.py"]
    assert names(project, "sub/c_pb2.py") == ["sub/c_pb2.py"]


def test_an_ignored_folder_can_be_given(project: Path) -> None:
    make(project, "out/a.py", "out/b_pb2.py")
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("out/\n")
    assert names(project) == []
    assert names(project, "out") == ["out/a.py", "out/b_pb2.py"]


def test_exclude(project: Path) -> None:
    make(project, "a.py", "legacy/b.py", "src/legacy/c.py", "src/d.py")
    (project / "amplint.toml").write_text('exclude = ["/legacy", "d.py"]\n')
    assert names(project) == ["a.py", "src/legacy/c.py"]
    assert names(project, "legacy") == ["legacy/b.py"]
    assert names(project, "src") == ["src/legacy/c.py"]


def test_each_folder_excludes_by_the_nearest_configuration(project: Path) -> None:
    make(project, "gen/a.py", "b.py", "one/gen/a.py", "one/b.py", "two/gen/a.py", "two/in/b.py", "two/in/gen/a.py")
    (project / "amplint.toml").write_text('exclude = ["gen"]\n')
    (project / "one" / "pyproject.toml").write_text('[tool.amplint]\nexclude = ["/b.py"]\n')
    (project / "two" / "amplint.toml").write_text("")
    (project / "two" / "in" / "pyproject.toml").write_text("[tool.other]\n")
    assert names(project) == ["b.py", "one/gen/a.py", "two/gen/a.py", "two/in/b.py", "two/in/gen/a.py"]
    assert names(project, "one", "b.py") == ["b.py", "one/gen/a.py"]


def test_an_excluded_folder_is_not_entered_for_its_configuration(project: Path) -> None:
    make(project, "a.py", "old/b.py")
    (project / "amplint.toml").write_text('exclude = ["old"]\n')
    (project / "old" / "amplint.toml").write_text("")
    assert names(project) == ["a.py"]
    assert names(project, "old") == ["old/b.py"]


def test_a_gitignore_takes_no_exclude_back(project: Path) -> None:
    make(project, "a.py", "b.py")
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("!b.py\n")
    (project / "amplint.toml").write_text('exclude = ["b.py"]\n')
    assert names(project) == ["a.py"]


def test_what_is_passed_over_is_counted_by_reason(project: Path) -> None:
    make(project, "a.py", "old/a.py", "old/in/b.py", "old/text.md", ".hidden/a.py", ".hidden/.deeper/b.py", "venv/a.py")
    (project / "._a.py").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
    make(
        project,
        "__pycache__/a.pyc",
        ".ipynb_checkpoints/n-checkpoint.ipynb",
        "gen_pb2.py",
        "notes.txt",
        ".git/config",
        "old/c.py",
    )
    (project / ".gitignore").write_text("*_pb2.py\n")
    (project / "amplint.toml").write_text('exclude = ["old"]\n')
    found = find_files([".", "./."], Configurations())
    reasons = {"excluded": 3, "in hidden folders": 3, "in venv": 1, "named in .gitignore": 1, "of macOS's own": 1}
    assert {reason: number for reason, number in found.passed_over.reasons.items() if number} == reasons
    assert found.passed_over.summary() == (
        "9 files were passed over: 3 in hidden folders, 3 excluded, 1 of macOS's own, 1 named in .gitignore, 1 in venv."
    )


def test_counting_has_an_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from amplint import passed_over

    monkeypatch.setattr(passed_over, "LOOKED_AT", 4)
    make(project, "a.py", *(f".hidden/{folder}/{name}.py" for folder in "abcd" for name in "xy"))
    said = find_files(["."]).passed_over.summary()
    assert said is not None
    assert said.startswith("At least ")


def test_symbolic_links(project: Path) -> None:
    make(project, "pkg/a.py")
    (project / "pkg" / "loop").symlink_to(project / "pkg")
    (project / "pkg" / "up").symlink_to(project)
    (project / "again.py").symlink_to(project / "pkg" / "a.py")
    (project / "dangling.py").symlink_to(project / "nowhere.py")
    found = find_files(["."])
    assert len(found.files) == 1
    assert len(found.errors) == 1
    assert "dangling.py" in found.errors[0]


def test_missing_path(project: Path) -> None:
    found = find_files(["nowhere"])
    assert found.files == []
    assert found.errors == ["no such file or directory: nowhere"]


def test_notebooks_are_found(project: Path) -> None:
    make(project, "a.ipynb", "in/b.ipynb", ".ipynb_checkpoints/a-checkpoint.ipynb")
    assert names(project) == ["a.ipynb", "in/b.ipynb"]
    assert names(project, "in/b.ipynb") == ["in/b.ipynb"]


def test_what_reads_python_alone_passes_notebooks_over(project: Path) -> None:
    make(project, "a.ipynb", "b.py")
    found = find_files(["."], notebooks=False)
    assert [file.path.name for file in found.files] == ["b.py"]
    assert (found.errors, found.passed_over.summary()) == ([], "1 file was passed over: 1 notebooks.")
    assert find_files(["a.ipynb"], notebooks=False).errors == [
        "a.ipynb is a notebook: only check reads notebooks, other commands Python source"
    ]


def test_unreadable_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    make(project, "a.py", "sub/b.py")
    scandir = os.scandir

    def deny(path: Path) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", deny)
    found = find_files(["."])
    assert [file.path.name for file in found.files] == ["a.py"]
    assert found.errors == [f"cannot read {project / 'sub'}: Permission denied"]


def test_display_path(project: Path) -> None:
    assert display_path(project / "a" / "b.py") == "a/b.py"
    assert display_path(Path("/elsewhere/b.py")) == "/elsewhere/b.py"
