"""The counter of code lines: comments, docstrings and examples are no code."""

from __future__ import annotations

import sys

from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))

from code_lines import counted  # noqa: E402

TEXT = '''\
"""A file.

With a docstring.
"""

# a comment
import os


class Rule:
    """Documentation."""

    code = "X"
    """What it is."""
    bad: tuple[str, ...] = (
        "one",
        "two",
    )

    def run(self):  # counts
        return """a
        string"""
'''


def test_only_code_counts() -> None:
    assert counted(TEXT) == (6, 4)
