"""What rules, those of third parties too, import from ``amplint.rule``: a list that changes on purpose only."""

from __future__ import annotations

import re
import sys

from conftest import ROOT

from amplint import rule

BENCHMARKS = ROOT / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))

from imports import rule_imports  # noqa: E402

WHAT_A_RULE_IS = {"Rule", "Example", "Evidence", "TENSOR_CODE", "Severity", "Applicability"}
WHAT_IT_SAYS = {"Suspect", "Span", "Location", "Cause", "Fix", "Edit"}
HOW_SURE = {"Standing", "FORCED", "ASSUMED", "doubts"}
FACTS = {"FileFacts", "Conflict", "Kind", "Operand", "MadeOperand", "Promotion", "Apart", "Addressed", "CastCall"}
FUNCTIONS_AND_TRAINING = {"Moment", "Step", "Gradients"}
FOR_TYPES_ALONE = {"Visit"}
NAMES = WHAT_A_RULE_IS | WHAT_IT_SAYS | HOW_SURE | FACTS | FUNCTIONS_AND_TRAINING


def test_the_names_are_these() -> None:
    assert set(rule.__all__) == NAMES
    assert all(hasattr(rule, name) for name in NAMES)


def test_each_name_is_documented_and_needed() -> None:
    documented = set(re.findall(r"``(\w+)``", rule.__doc__ or ""))
    used = set(rule_imports()["amplint.rule"])
    assert used == NAMES | FOR_TYPES_ALONE
    assert used <= documented


def test_nothing_that_imports_libcst_is_among_them() -> None:
    assert not any(hasattr(rule, name) for name in FOR_TYPES_ALONE)
