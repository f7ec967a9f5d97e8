"""What the tests of CI share: a hazard, commands on the PATH, scripts that are run, schemas."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from snapshot import ROOT, clean_environment

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


def command(path: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\nset -euo pipefail\n" + text)
    path.chmod(0o755)
    return path


def on_the_path(folder: Path) -> str:
    """The PATH with a folder before all others."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def amplint_command(folder: Path) -> Path:
    """Put an ``amplint`` that runs this checkout into a folder."""
    return command(folder / "amplint", f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m amplint "$@"\n')


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder; commands in ``bin`` beside the folder come first."""
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=clean_environment(PATH=on_the_path(folder.parent / "bin"), **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def valid(schema: str, file: Path, text: str | None = None) -> None:
    """Ask check-jsonschema whether a file holds to one of its schemas; with ``text``, write the file before."""
    if text is not None:
        file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
