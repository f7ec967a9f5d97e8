"""The examples of the built-in rules: the pair that stands in each, and the files of ``fixtures/rules/``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amplint.examples.cases import Case, Problem, cases
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.rule_base import Rule

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "rules"
RULES = tuple(rule for rule in load_rules() if not rule.code.startswith("AMP9"))
PROBLEMS: list[Problem] = []
CASES = tuple(cases(RULES, FOLDER, PROBLEMS))


def bad(rule: Rule) -> list[Case]:
    """The rule's own bad example, then those in files, by name."""
    return [case for case in every_bad() if case.rule.code == rule.code]


def good(rule: Rule) -> list[Case]:
    """The rule's own good example, then those in files, by name."""
    return [case for case in every_good() if case.rule.code == rule.code]


def every_bad() -> list[Case]:
    return [case for case in CASES if case.is_bad]


def every_good() -> list[Case]:
    return [case for case in CASES if not case.is_bad]


def ids(cases: Sequence[Case]) -> list[str]:
    return [f"{case.rule.code}-{case.name}" for case in cases]
