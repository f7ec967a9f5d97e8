"""benchmarks/incidents.py: the public incidents on the released code that had them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "incidents.py"
WHEELS_VARIABLE = "AMPLINT_WHEELS"
"""Names a folder of already downloaded wheels."""


def test_incidents_are_found_before_their_fix_and_not_after() -> None:
    wheels = os.environ.get(WHEELS_VARIABLE)
    options = ["--wheels", wheels] if wheels else []
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *options], capture_output=True, text=True, check=False, timeout=1200
    )
    if done.returncode == 2 and "the package registry cannot be reached" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
