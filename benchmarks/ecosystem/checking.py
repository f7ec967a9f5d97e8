"""One ``amplint check`` of a release, at default settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.files import find_files
from ecosystem.result import Checked, Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ecosystem.releases import Release


class CheckError(Exception):
    """``amplint check`` did not do its work."""


def check(
    release: Release,
    folder: Path,
    jobs: int,
    extra: Sequence[str] = (),
    seconds: float | None = None,
    only: Sequence[str] = (),
) -> Checked:
    """Check the files of a release for ``only`` some rules, or those that are on by default, and for ``extra`` ones.

    Raises CheckError, also where amplint fails on one of them or takes longer than ``seconds``.
    """
    files = [file.path for file in find_files([str(folder)]).files]
    if not files:
        raise CheckError(f"{release}: {folder} holds no Python file that amplint would check")
    command = [sys.executable, "-m", "amplint", "check", "--isolated", "--no-cache", "--exit-zero"]
    command += ["--jobs", str(jobs), "--output-format", "json"]
    command += [f"--select={rules}" for rules in only] + [f"--extend-select={rules}" for rules in extra]
    command += [str(folder)]
    before, start = os.times(), time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise CheckError(f"{release}: amplint check takes longer than {seconds:.0f} s") from error
    wall, after = time.monotonic() - start, os.times()
    if done.returncode != 0:
        raise CheckError(f"{release}: amplint check left with status {done.returncode}:\n{done.stderr.strip()}")
    return Checked(
        release=release,
        files=len(files),
        lines=sum(len(file.read_bytes().splitlines()) for file in files),
        wall=round(wall, 2),
        cpu=round(after.children_user + after.children_system - before.children_user - before.children_system, 2),
        findings=tuple(sorted(_found(finding, folder) for finding in json.loads(done.stdout))),
    )


def _found(finding: dict[str, Any], folder: Path) -> Found:
    return Found(
        path=Path(finding["filename"]).relative_to(folder).as_posix(),
        line=finding["location"]["row"],
        code=finding["code"],
        severity=finding["severity"],
        certainty=finding["certainty"],
        scenarios=tuple(finding["scenarios"]),
        message=finding["message"],
        also=tuple(place["location"]["row"] for place in finding["also"]),
    )
