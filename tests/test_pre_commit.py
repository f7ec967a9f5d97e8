"""The hooks of .pre-commit-hooks.yaml, installed and run by pre-commit itself from a snapshot of this tree."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from notebooks import notebook
from snapshot import clean_environment, commit_all, copy_project, git

if TYPE_CHECKING:
    from pathlib import Path

HAZARD = """\
import torch


def rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(16, 8, device=x.device)
    out.index_add_(0, index, x @ x.t())
    return out
"""
CURED = HAZARD.replace("x @ x.t())", "(x @ x.t()).to(out.dtype))")
HARMLESS = "import torch\n\nprint(torch.ones(2).sum())\n"


def pre_commit(scratch: Path, *arguments: str) -> tuple[int, str]:
    """Run pre-commit in a repository, with a home of its own beside it: exit status and output."""
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        cwd=scratch,
        env=clean_environment(PRE_COMMIT_HOME=str(scratch.parent / "home"), PRE_COMMIT_COLOR="never"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout


def repository(scratch: Path, files: dict[str, str]) -> Path:
    """Make a repository with these files staged."""
    scratch.mkdir()
    git(scratch, "init", "--quiet")
    for name, text in files.items():
        (scratch / name).write_text(text)
    git(scratch, "add", "--all")
    return scratch


def test_hooks_of_a_configured_repository(tmp_path: Path) -> None:
    """One test for all, so that the hooks' environment is installed once."""
    hooks = copy_project(tmp_path / "hooks")
    revision = commit_all(hooks)

    def config(hook: str) -> str:
        return f"repos:\n  - repo: {hooks.as_uri()}\n    rev: {revision}\n    hooks:\n      - id: {hook}\n"

    def run(name: str, hook: str, files: dict[str, str]) -> tuple[int, str, Path]:
        scratch = repository(tmp_path / name, {".pre-commit-config.yaml": config(hook), **files})
        return *pre_commit(scratch, "run"), scratch

    status, output, scratch = run(
        "found", "amplint", {"model.py": HAZARD, "harmless.py": HARMLESS, "n.ipynb": notebook(HAZARD)}
    )
    assert status == 1, output
    assert "AMP105" in output
    assert "model.py:6" in output
    assert "n.ipynb:cell 1:6" in output
    assert (scratch / "model.py").read_text() == HAZARD

    status, output, _ = run("clean", "amplint", {"harmless.py": HARMLESS})
    assert status == 0, output
    assert "Passed" in output

    status, output, scratch = run("fixed", "amplint-fix", {"model.py": HAZARD})
    assert status == 1, output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED
    git(scratch, "add", "model.py")
    status, output = pre_commit(scratch, "run")
    assert status == 0, output

    for hook in ("amplint", "amplint-fix"):
        status, output, _ = run(f"empty-{hook}", hook, {"notes.md": "AMP\n"})
        assert status == 0, output
        assert "Skipped" in output


def test_try_repo(tmp_path: Path) -> None:
    hooks = copy_project(tmp_path / "hooks")
    commit_all(hooks)
    scratch = repository(tmp_path / "scratch", {"model.py": HAZARD})
    status, output = pre_commit(scratch, "try-repo", str(hooks))
    assert status == 1, output
    assert "AMP105" in output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED
