"""Of random programs every dtype that torch computes is among those that are inferred, and most are known."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from soundness.command import share  # noqa: E402
from soundness.judging import compare, infer, judge  # noqa: E402
from soundness.running import record  # noqa: E402

PROGRAMS = 200
PART = 40
FIRST = 1_000_000
"""The seed of the first: the benchmark begins with others."""
HEADER = "import torch\nfrom torch import nn\nfrom chance import pick, tick, toss\n"


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, PART))
def test_recorded_dtypes_are_among_the_inferred_ones(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + PART):
        found = judge(Path("program.py").absolute(), seed)
        assert not found.violations, (seed, found.violations[0])
        seen.update(found.counts)
    assert share(seen) > 0.8


def test_what_is_wrong_is_seen(tmp_path: Path) -> None:
    body = "        y = x.half() if toss() else x\n        return y\n"
    text = HEADER + "class Model(nn.Module):\n    def forward(self, x):\n" + body
    recorded, inferred = record(text, 1), infer(tmp_path / "program.py", text)
    found = compare(1, text, recorded, inferred)
    assert not found.violations
    assert found.counts["among"] > 0
    place = next(place for place, dtypes in recorded["fp32"].items() if dtypes == {"float16"})
    inferred["fp32"][place] = ("float64",)
    (violation,) = compare(1, text, recorded, inferred).violations
    assert violation.text == "x.half()"
