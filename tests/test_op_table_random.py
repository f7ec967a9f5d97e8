"""Property: for random operations, dtypes, dimensions and autocast regions, torch's dtype is among those inferred."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from op_random import OPERATIONS, Random, calls, check

EXAMPLES = 400


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(calls())
def test_on_the_cpu(call: Random) -> None:
    check(call, "cpu")


def test_under_the_policy_of_cuda() -> None:
    script = Path(__file__).with_name("op_random.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(EXAMPLES)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_that_many_operations_are_drawn_from() -> None:
    assert len(OPERATIONS) > 500
