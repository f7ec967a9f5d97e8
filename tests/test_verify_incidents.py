"""benchmarks/verify_incidents.py: the public incidents, confirmed by one command each, and their fixed forms not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "verify_incidents.py"
WHEELS_VARIABLE = "AMPLINT_WHEELS"
"""Names a folder of already downloaded wheels."""


def test_fixtures_are_confirmed_and_cured_and_their_fixed_forms_are_not() -> None:
    done = _run("--only", "fixtures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok  ") == 12


def test_releases_are_confirmed_before_their_fix_and_not_after() -> None:
    wheels = os.environ.get(WHEELS_VARIABLE)
    done = _run("--only", "releases", *(["--wheels", wheels] if wheels else []))
    if done.returncode == 2 and "the package registry cannot be reached" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok  ") == 9


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    """The benchmark on one thread."""
    return subprocess.run(
        [sys.executable, str(BENCHMARK), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
