"""The hooks of .pre-commit-hooks.yaml, run by pre-commit and prek themselves from a snapshot of this tree, with the
configurations of docs/ci.md."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from ci_scratch import CURED, HAZARD, amplint_command, on_the_path
from notebooks import notebook
from snapshot import ROOT, clean_environment, commit_all, copy_project, git

HARMLESS = "import torch\n\nprint(torch.ones(2).sum())\n"
MANAGERS = {"pre-commit": [sys.executable, "-m", "pre_commit"], "prek": ["prek"]}
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WRITTEN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@dataclass(frozen=True)
class Hooks:
    """A repository with this tree as its one commit, and a home in which managers keep what they installed from it."""

    folder: Path
    revision: str
    home: Path
    constraint: Path


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """One for all tests, so that each manager installs the hooks once. The torch that they ask for is the one here: a
    wheel of its name and version leads to it, since downloading and unpacking one shows nothing of the hooks."""
    scratch = tmp_path_factory.mktemp("hooks")
    name, version = "torch", importlib.metadata.version("torch")
    wheel = scratch / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.pth": str(Path(torch.__file__).parent.parent) + "\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD")))
    constraint = scratch / "constraint.txt"
    constraint.write_text(f"torch @ {wheel.as_uri()}\n")
    folder = copy_project(scratch / "hooks")
    return Hooks(folder, commit_all(folder), scratch / "home", constraint)


def run_hooks(manager: str, hooks: Hooks, scratch: Path, *arguments: str) -> tuple[int, str]:
    """Run pre-commit or prek in a repository: exit status and output."""
    done = subprocess.run(
        [*MANAGERS[manager], *arguments],
        cwd=scratch,
        env=clean_environment(
            PRE_COMMIT_HOME=str(hooks.home / "pre-commit"),
            PREK_HOME=str(hooks.home / "prek"),
            PRE_COMMIT_COLOR="never",
            PATH=on_the_path(scratch.parent / "bin"),
            PIP_CONSTRAINT=" ".join(filter(None, [os.environ.get("PIP_CONSTRAINT"), str(hooks.constraint)])),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout


def configuration(hooks: Hooks) -> str:
    """The page's configuration, for hooks in a repository on this machine."""
    (text,) = (text for text in WRITTEN if "- id: amplint-fix" in text)
    return text.replace("ADDRESS", hooks.folder.as_uri()).replace("REVISION", hooks.revision)


def repository(scratch: Path, files: dict[str, str]) -> Path:
    """Make a repository with these files staged."""
    scratch.mkdir()
    git(scratch, "init", "--quiet")
    for name, text in files.items():
        (scratch / name).write_text(text)
    git(scratch, "add", "--all")
    return scratch


def test_hooks_of_a_configured_repository(tmp_path: Path, hooks: Hooks) -> None:
    def config(hook: str) -> str:
        return f"repos:\n  - repo: {hooks.folder.as_uri()}\n    rev: {hooks.revision}\n    hooks:\n      - id: {hook}\n"

    def run(name: str, hook: str, files: dict[str, str]) -> tuple[int, str, Path]:
        scratch = repository(tmp_path / name, {".pre-commit-config.yaml": config(hook), **files})
        return *run_hooks("pre-commit", hooks, scratch, "run"), scratch

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
    status, output = run_hooks("pre-commit", hooks, scratch, "run")
    assert status == 0, output

    for hook in ("amplint", "amplint-fix"):
        status, output, _ = run(f"empty-{hook}", hook, {"notes.md": "AMP\n"})
        assert status == 0, output
        assert "Skipped" in output


def test_try_repo(tmp_path: Path, hooks: Hooks) -> None:
    scratch = repository(tmp_path / "scratch", {"model.py": HAZARD})
    status, output = run_hooks("pre-commit", hooks, scratch, "try-repo", str(hooks.folder))
    assert status == 1, output
    assert "AMP105" in output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED


def test_prek_installs_and_runs_what_the_page_has(tmp_path: Path, hooks: Hooks) -> None:
    scratch = repository(
        tmp_path / "scratch",
        {".pre-commit-config.yaml": configuration(hooks), "model.py": HAZARD},
    )
    status, output = run_hooks("prek", hooks, scratch, "run", "--all-files")
    assert status == 1, output
    assert "files were modified by this hook" in output
    assert (scratch / "model.py").read_text() == CURED
    git(scratch, "add", "model.py")
    status, output = run_hooks("prek", hooks, scratch, "run", "--all-files")
    assert status == 0, output


@pytest.mark.parametrize("manager", MANAGERS)
def test_verify_in_the_projects_own_environment(tmp_path: Path, hooks: Hooks, manager: str) -> None:
    amplint_command(tmp_path / "bin")
    (own,) = (text for text in WRITTEN if "language: system" in text)
    config = configuration(hooks).replace("      - id: amplint-fix\n", own)
    scratch = repository(
        tmp_path / "scratch", {".pre-commit-config.yaml": config, "model.py": HAZARD, "n.ipynb": notebook(HAZARD)}
    )
    status, output = run_hooks(manager, hooks, scratch, "run")
    assert status == 1, output
    assert "model.py::rows" in output
    assert "confirmed  AMP105" in output
    assert "n.ipynb" not in output
    (scratch / "model.py").write_text(CURED)
    git(scratch, "add", "model.py")
    status, output = run_hooks(manager, hooks, scratch, "run")
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
