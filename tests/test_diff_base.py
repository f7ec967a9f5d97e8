"""``check --diff-base``: what changed lines bring."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Completed

    Run = Callable[..., Completed]
    Found = Callable[..., list[tuple[str, int]]]


def git(*arguments: str, folder: Path | None = None) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *settings, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(text: str = "change") -> None:
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", text)


@pytest.fixture
def repository(project: Path) -> Path:
    """One commit on main, and a branch on top of it."""
    git("init", "--quiet")
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("import torch\n\nx.half()\n\n\ny = 1\n\n\nz.double()\n")
    (project / "b.py").write_text("x.half()\n")
    commit()
    git("branch", "--move", "main")
    git("switch", "--quiet", "--create", "work")
    return project


@pytest.fixture
def found(run: Run) -> Found:
    def check(*arguments: str, base: str = "main", stdin: bytes = b"") -> list[tuple[str, int]]:
        result = run("check", "--diff-base", base, "--output-format", "json", *arguments, stdin=stdin)
        findings = json.loads(result.stdout)
        assert result.status == (1 if findings else 0)
        return [(Path(finding["filename"]).name, finding["location"]["row"]) for finding in findings]

    return check


def test_nothing_changed(repository: Path, run: Run) -> None:
    result = run("check", "--diff-base", "main")
    assert result.status == 0
    assert result.stderr == "Nothing to check: none of 2 files changed since main.\n"
    assert run("check", "--diff-base", "main", "--output-format", "json").stdout == "[]\n"


def test_committed_staged_changed_and_untracked_lines(repository: Path, found: Found) -> None:
    file = repository / "src" / "a.py"
    file.write_text(file.read_text().replace("y = 1", "y.half()"))
    commit()
    assert found() == [("a.py", 6)]
    file.write_text("w.half()\n" + file.read_text())
    git("add", "src/a.py")
    file.write_text(file.read_text() + "last.double()\n")
    (repository / "c.py").write_text("x.double()\n")
    assert found() == [("c.py", 1), ("a.py", 1), ("a.py", 7), ("a.py", 11)]
    assert found("src") == [("a.py", 1), ("a.py", 7), ("a.py", 11)]
    assert found(base="HEAD") == [("c.py", 1), ("a.py", 1), ("a.py", 11)]


def test_it_goes_by_where_the_branches_part(repository: Path, found: Found) -> None:
    file = repository / "src" / "a.py"
    git("switch", "--quiet", "main")
    (repository / "b.py").write_text("changed.half()\n")
    commit()
    git("switch", "--quiet", "work")
    file.write_text(file.read_text() + "new.half()\n")
    assert found() == [("a.py", 10)]


def test_a_span_that_touches_a_changed_line(repository: Path, found: Found) -> None:
    (repository / "b.py").write_text("x.half(\n    1,\n    2,\n)\nx.double()\n")
    commit("several lines")
    git("branch", "--force", "main")
    (repository / "b.py").write_text("x.half(\n    1,\n    3,\n)\nx.double()\n")
    assert found() == [("b.py", 1)]


def test_a_cause_that_touches_a_changed_line(project: Path) -> None:
    from conftest import amplint

    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        y = x\n        return self.a(y)\n"
    )
    git("init", "--quiet")
    file = project / "a.py"
    file.write_text(text)
    commit()
    file.write_text(text.replace("y = x\n", "y = x.float()\n"))
    result = amplint("check", "--diff-base", "HEAD", "--output-format", "json")
    (finding,) = json.loads(result.stdout)
    assert finding["location"]["row"] == 12
    commit()
    file.write_text("# a line\n" + file.read_text())
    assert amplint("check", "--diff-base", "HEAD").status == 0


def test_removed_and_moved_lines_bring_nothing(repository: Path, found: Found) -> None:
    file = repository / "src" / "a.py"
    file.write_text("# new\n" + file.read_text().replace("y = 1\n", ""))
    assert found() == []


@pytest.mark.parametrize("how", ["committed", "staged", "not staged"])
def test_renamed_files(repository: Path, found: Found, how: str) -> None:
    (repository / "a b\tü.py").write_text((repository / "src" / "a.py").read_text() + "new.half()\n")
    (repository / "src" / "a.py").unlink()
    if how != "not staged":
        git("add", "--all")
    if how == "committed":
        commit()
    before = git("status", "--porcelain")
    assert found() == [("a b\tü.py", 10)]
    assert git("status", "--porcelain") == before


def test_a_file_that_git_ignores_is_new(repository: Path, found: Found) -> None:
    (repository / ".gitignore").write_text("local.py\n")
    commit()
    (repository / "local.py").write_text("x.half()\n")
    assert found() == []
    assert found("local.py") == [("local.py", 1)]


def test_only_what_is_reported_is_fixed(repository: Path, run: Run) -> None:
    file = repository / "src" / "a.py"
    file.write_text(file.read_text().replace("y = 1", "y.half(); y.half(1)\nw.half()") + "v.half()\n")
    diff = run("check", "--diff-base", "main", "--diff")
    assert diff.status == 1
    assert "-x.half()" not in diff.stdout
    result = run("check", "--diff-base", "main", "--fix")
    assert result.status == 0
    new = "y.to(torch.float16); y.to(torch.float16)\nw.to(torch.float16)"
    assert file.read_text() == f"import torch\n\nx.half()\n\n\n{new}\n\n\nz.double()\nv.to(torch.float16)\n"
    assert "Fixed 4 findings in 1 file." in result.stderr
    assert (repository / "b.py").read_text() == "x.half()\n"


def test_a_fix_that_adds_lines_moves_the_changed_ones(repository: Path, run: Run) -> None:
    file = repository / "b.py"
    file.write_text("x.half()\nnew.half()\nlast = 1\n")
    assert run("check", "--diff-base", "main", "--fix").status == 0
    assert file.read_text() == "from torch import float16\nx.half()\nnew.to(float16)\nlast = 1\n"


def test_from_a_subfolder_and_for_stdin(repository: Path, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / "src" / "a.py"
    monkeypatch.chdir(repository / "src")
    text = file.read_text().replace("y = 1", "y.half()")
    assert found("-", "--stdin-filename", "a.py", stdin=text.encode()) == [("a.py", 6)]
    assert found("-", "--stdin-filename", "a.py", stdin=file.read_bytes()) == []
    assert found("-", "--stdin-filename", "new.py", stdin=b"x.half()\n") == [("new.py", 1)]
    file.write_text(text)
    assert found() == [("a.py", 6)]
    assert found("../b.py") == []
    git("mv", "a.py", "c.py")
    assert found("-", "--stdin-filename", "c.py", stdin=text.encode()) == [("c.py", 6)]


def test_a_file_that_no_longer_parses_is_told_wherever_it_breaks(repository: Path, run: Run) -> None:
    file = repository / "src" / "a.py"
    file.write_text(file.read_text().replace("x.half()", "x.half("))
    result = run("check", "--diff-base", "main", "--output-format", "concise")
    assert result.status == 1
    assert "AMP901" in result.stdout


def test_settings_of_git_do_not_matter(repository: Path, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in (
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("color.ui", "always"),
        ("diff.renames", "false"),
        ("diff.interHunkContext", "100"),
    ):
        git("config", key, value)
    (repository / ".gitattributes").write_text("*.py binary\n")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    file = repository / "src" / "a.py"
    file.write_text("++ x\n" + file.read_text() + "-- y.half()\n")
    assert found() == [("a.py", 11)]


def test_with_a_baseline(repository: Path, run: Run) -> None:
    file = repository / "src" / "a.py"
    file.write_text(file.read_text() + "new.half()\n")
    assert run("check", "--write-baseline", "base.json").status == 0
    file.write_text(file.read_text() + "newer.half()\n")
    result = run("check", "--diff-base", "main", "--baseline", "base.json", "--output-format", "json")
    assert [finding["location"]["row"] for finding in json.loads(result.stdout)] == [11]
    assert "gone" not in result.stderr


def test_no_repository(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\n")
    result = run("check", "--diff-base", "main")
    assert result.status == 2
    assert result.stderr == f"amplint: error: --diff-base needs git: {project} lies in no git repository\n"


@pytest.mark.parametrize(("revision", "said"), [("mian", "(did you mean 'main'?)"), ("--help", ""), ("main~9", "")])
def test_an_unknown_revision(repository: Path, run: Run, revision: str, said: str) -> None:
    result = run("check", f"--diff-base={revision}")
    assert result.status == 2
    assert f"git knows no revision '{revision}' in {repository}" in result.stderr
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_no_common_commit(repository: Path, run: Run) -> None:
    git("switch", "--quiet", "--orphan", "other")
    (repository / "c.py").write_text("x = 1\n")
    commit()
    result = run("check", "--diff-base", "main")
    assert result.status == 2
    assert "have no common commit" in result.stderr


def test_no_git(repository: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = run("check", "--diff-base", "main")
    assert result.status == 2
    assert result.stderr == "amplint: error: --diff-base asks git, and there is no git on the PATH\n"


def test_a_notebook_that_changed_counts_as_a_whole(repository: Path, found: Found, run: Run) -> None:
    file = repository / "a.ipynb"
    file.write_text(notebook("x.half()", "y = 1"))
    commit()
    git("branch", "--force", "main")
    assert found() == []
    file.write_text(notebook("x.half()", "y = 2"))
    assert found() == [("a.ipynb", 1)]
    result = run("check", "--add-ignore", "a.ipynb")
    assert result.status == 1
    assert "--add-ignore does not write into notebooks" in result.stderr
    assert file.read_text() == notebook("x.half()", "y = 2")


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "metadata": {}, "source": [cell], "outputs": []} for cell in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
