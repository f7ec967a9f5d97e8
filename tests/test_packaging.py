"""The wheel: it holds every file, and works in an environment of its own that has no torch."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from snapshot import clean_environment, copy_project, fresh_environment, project_files

from amplint import __version__

FOLDERS = {"amplint": "amplint", "rules": "amplint_rules"}
"""Folders of the project that are packages, and the names they are installed under."""


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=clean_environment(), capture_output=True, text=True, check=False, timeout=600
    )


def succeed(*command: str | Path, folder: Path) -> str:
    done = run(*command, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listed_rules(output: str) -> list[dict[str, object]]:
    rules: list[dict[str, object]] = json.loads(output)
    return rules


def test_wheel(tmp_path: Path) -> None:
    """One test for all, so that the wheel is built and installed once."""
    project = copy_project(tmp_path / "project")
    expected = {
        f"{package}/{path.relative_to(project / folder).as_posix()}"
        for folder, package in FOLDERS.items()
        for path in (project / folder).rglob("*")
        if path.is_file()
    }
    succeed(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, project, folder=tmp_path)
    (wheel,) = tmp_path.glob(f"amplint-{__version__}-*.whl")

    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert packed == expected

    binaries = fresh_environment(tmp_path / "environment")
    python, amplint = binaries / "python", binaries / "amplint"
    succeed(python, "-m", "pip", "install", "--quiet", wheel, folder=tmp_path)
    assert run(python, "-c", "import torch", folder=tmp_path).returncode != 0
    where = succeed(
        python, "-c", "import amplint, amplint_rules; print(amplint.__path__, amplint_rules.__path__)", folder=tmp_path
    )
    assert where.count("site-packages") == 2

    installed = listed_rules(succeed(amplint, "rules", "--output-format", "json", folder=tmp_path))
    editable = succeed(sys.executable, "-m", "amplint", "rules", "--output-format", "json", folder=tmp_path)
    assert installed == listed_rules(editable)

    incidents = project / "fixtures" / "incidents"
    failing, fixed = sorted(incidents.glob("*/failing.py")), sorted(incidents.glob("*/fixed.py"))
    done = run(amplint, "check", "--isolated", "--output-format", "json", *failing, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert sorted({Path(finding["filename"]) for finding in json.loads(done.stdout)}) == failing
    done = run(amplint, "check", "--isolated", *fixed, folder=tmp_path)
    assert done.returncode == 0, done.stdout


def test_every_package_folder_is_listed() -> None:
    """Automatic discovery is off, since it leaves the mapped ``rules`` out: a new folder has to be added by hand."""
    tomllib = pytest.importorskip("tomllib")
    setuptools = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {Path(name).parent for name in project_files() if name.endswith(".py") and name.split("/")[0] in FOLDERS}
    packages = {".".join((FOLDERS[folder.parts[0]], *folder.parts[1:])) for folder in folders}
    assert sorted(setuptools["packages"]) == sorted(packages)
