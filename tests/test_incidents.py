"""benchmarks/incidents.py and verify_incidents.py: the public incidents, found on the released code that had them, and
confirmed by one command each; their fixed forms are not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
WHEELS_VARIABLE = "AMPLINT_WHEELS"
"""Names a folder of already downloaded wheels."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the wheels lie that the first benchmark downloads, for the others too."""
    return os.environ.get(WHEELS_VARIABLE) or str(tmp_path_factory.mktemp("wheels"))


def test_releases_are_found_before_their_fix_and_not_after(wheels: str) -> None:
    done = _run("incidents.py", "--wheels", wheels)
    assert done.returncode == 0, done.stdout + done.stderr


def test_releases_are_confirmed_before_their_fix_and_not_after(wheels: str) -> None:
    done = _run("verify_incidents.py", "--only", "releases", "--wheels", wheels)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok  ") == 9


def test_fixtures_are_confirmed_and_cured_and_their_fixed_forms_are_not() -> None:
    done = _run("verify_incidents.py", "--only", "fixtures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok  ") == 12


def _run(benchmark: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / benchmark), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    if done.returncode == 2 and "the package registry cannot be reached" in done.stderr:
        pytest.skip(done.stderr.strip())
    return done
