"""A copy of the working tree, uncommitted work included, for tests that build or clone it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what git sets for its hooks and what lets Python find this checkout."""
    kept = {
        k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "PYTHONPATH")
    }
    return {**kept, **more}


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, and return what it prints."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, "-c", "core.hooksPath=/dev/null", *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean_environment(), check=True, capture_output=True, text=True
    ).stdout


def project_files() -> list[str]:
    """The files of this project that git knows or would add, by path from its root."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


def copy_project(folder: Path) -> Path:
    """Copy the project into a new folder."""
    for name in project_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def commit_all(folder: Path) -> str:
    """Make a folder a git repository with one commit, and return its hash."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "snapshot")
    return git(folder, "rev-parse", "HEAD").strip()


def fresh_environment(folder: Path) -> Path:
    """Make a virtual environment with pip, and return the folder of its commands."""
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", folder], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")
