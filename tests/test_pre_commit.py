"""The hooks of .pre-commit-hooks.yaml, run by pre-commit and prek themselves from a snapshot of this tree, with the
configurations of docs/ci.md."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from ci_scratch import CURED, HAZARD, amplint_command, on_the_path
from notebooks import notebook
from snapshot import ROOT, clean_environment, commit_all, copy_project, git

if TYPE_CHECKING:
    from pathlib import Path

HARMLESS = "import torch\n\nprint(torch.ones(2).sum())\n"
MANAGERS = {"pre-commit": [sys.executable, "-m", "pre_commit"], "prek": ["prek"]}
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WRITTEN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def run_hooks(manager: str, scratch: Path, *arguments: str) -> tuple[int, str]:
    """Run pre-commit or prek in a repository, with a home of its own beside it: exit status and output."""
    home = str(scratch.parent / "home")
    done = subprocess.run(
        [*MANAGERS[manager], *arguments],
        cwd=scratch,
        env=clean_environment(
            PRE_COMMIT_HOME=home, PREK_HOME=home, PRE_COMMIT_COLOR="never", PATH=on_the_path(scratch.parent / "bin")
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout


def configuration(hooks: Path, revision: str) -> str:
    """The page's configuration, for hooks in a repository on this machine."""
    (text,) = (text for text in WRITTEN if "- id: amplint-fix" in text)
    return text.replace("ADDRESS", hooks.as_uri()).replace("REVISION", revision)


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
        return *run_hooks("pre-commit", scratch, "run"), scratch

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
    status, output = run_hooks("pre-commit", scratch, "run")
    assert status == 0, output

    for hook in ("amplint", "amplint-fix"):
        status, output, _ = run(f"empty-{hook}", hook, {"notes.md": "AMP\n"})
        assert status == 0, output
        assert "Skipped" in output


def test_try_repo(tmp_path: Path) -> None:
    hooks = copy_project(tmp_path / "hooks")
    commit_all(hooks)
    scratch = repository(tmp_path / "scratch", {"model.py": HAZARD})
    status, output = run_hooks("pre-commit", scratch, "try-repo", str(hooks))
    assert status == 1, output
    assert "AMP105" in output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED


def test_prek_installs_and_runs_what_the_page_has(tmp_path: Path) -> None:
    hooks = copy_project(tmp_path / "hooks")
    scratch = repository(
        tmp_path / "scratch",
        {".pre-commit-config.yaml": configuration(hooks, commit_all(hooks)), "model.py": HAZARD},
    )
    status, output = run_hooks("prek", scratch, "run", "--all-files")
    assert status == 1, output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED
    git(scratch, "add", "model.py")
    status, output = run_hooks("prek", scratch, "run", "--all-files")
    assert status == 0, output


@pytest.mark.parametrize("manager", MANAGERS)
def test_verify_in_the_projects_own_environment(tmp_path: Path, manager: str) -> None:
    hooks = copy_project(tmp_path / "hooks")
    amplint_command(tmp_path / "bin")
    (own,) = (text for text in WRITTEN if "language: system" in text)
    config = configuration(hooks, commit_all(hooks)).replace("      - id: amplint-fix\n", own)
    scratch = repository(
        tmp_path / "scratch", {".pre-commit-config.yaml": config, "model.py": HAZARD, "n.ipynb": notebook(HAZARD)}
    )
    status, output = run_hooks(manager, scratch, "run")
    assert status == 1, output
    assert "model.py::rows" in output
    assert "confirmed  AMP105" in output
    assert "n.ipynb" not in output
    (scratch / "model.py").write_text(CURED)
    git(scratch, "add", "model.py")
    status, output = run_hooks(manager, scratch, "run")
    assert status == 0, output


def test_verify_installs_the_torch_that_amplint_needs() -> None:
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert hooks["amplint-verify"]["additional_dependencies"] == extras["verify"]
    assert {key for key, hook in hooks.items() if "additional_dependencies" in hook} == {"amplint-verify"}


def test_what_the_page_has_for_hooks_is_what_there_is() -> None:
    hooks = [hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())]
    assert re.findall(r"^\| `(amplint[a-z-]*)` \|", PAGE, re.MULTILINE) == hooks
    (service,) = (yaml.safe_load(text)["ci"] for text in WRITTEN if text.startswith("ci:"))
    assert service["autofix_prs"] is True
    assert set(service["skip"]) == {"amplint-verify"}
