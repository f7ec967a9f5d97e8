"""Property: what ``--fix`` does alone changes no bit of what a program gave before, in any dtype and autocast state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from safe_fix_random import PROGRAMS, mended

from amplint.engine import Options, check_file
from amplint.finding import Applicability
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(load_rules())
INDEX_WRITE = tuple(rule for rule in RULES if rule.code == "AMP105")
EXAMPLES = {"AMP103": 35, "AMP105": 40, "AMP107": 16, "AMP203": 12, "AMP204": 30, "AMP301": 20, "AMP601": 8}
CURES = {"AMP103", "AMP105", "AMP107", "AMP203", "AMP204", "AMP301"}
"""What raised before; AMP601's old names still work."""


def test_every_rule_with_a_safe_fix_is_drawn_from() -> None:
    safe = {rule.code for rule in RULES if rule.fix is Applicability.SAFE}
    assert set(PROGRAMS) == set(EXAMPLES) == safe - {"AMP900"}, "AMP900 edits comments alone"


def test_safe_fixes_change_no_bit_under_the_policy_of_cuda() -> None:
    script = Path(__file__).with_name("safe_fix_random.py")
    arguments = [f"{code}={count}" for code, count in EXAMPLES.items()]
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {code: tuple(map(int, rest)) for code, *rest in map(str.split, done.stdout.splitlines())}
    for code in EXAMPLES:
        programs, compared, cured = rows[code]
        assert programs >= 6, (code, rows)
        assert compared >= 100 or code == "AMP203", (code, rows)  # without device_type nothing ran
        assert cured >= 20 or code not in CURES, (code, rows)


CAUGHT = """\
import contextlib
import torch


def spread(x: torch.Tensor, ids: torch.Tensor):
    out = torch.zeros(4, 4)
    {opening}:
        out.index_add_(0, ids, x * 2)
    {closing}
    return out
"""


@pytest.mark.parametrize(
    ("opening", "closing", "safe"),
    [
        ("try", "except RuntimeError:\n        out = out + 1", False),
        ("with contextlib.suppress(RuntimeError)", "", False),
        ("try", "except RuntimeError as error:\n        raise ValueError(x.shape) from error", True),
        ("try", "finally:\n        ids = None", True),
        ("with torch.no_grad()", "", True),
    ],
)
def test_a_fix_of_what_the_file_catches_is_not_safe(opening: str, closing: str, safe: bool) -> None:
    """The program ran, and went on another way: mended it takes the first."""
    text = CAUGHT.format(opening=opening, closing=closing)
    (finding,) = check_file(
        Source(Path("/project/spread.py"), text.encode()), Options(INDEX_WRITE, DEFAULT_SCENARIOS)
    ).findings
    assert finding.fix is not None
    assert finding.fix.applicability is (Applicability.SAFE if safe else Applicability.UNSAFE)
    assert (mended(text, "AMP105", "cuda") != text) is safe
