"""How rules are found and chosen.

amplint imports no rule statically: the built-in ones are a pack like any other, a package with an ``all_rules()``.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from amplint.config import UsageError
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.rule_base import Rule

BUILT_IN = "amplint_rules"
ALL = "ALL"


def load_rules(packs: Sequence[str] = (BUILT_IN,)) -> tuple[Rule, ...]:
    """Every rule of the packs and amplint's own, by code. Raises UsageError for a pack that cannot be loaded."""
    rules: list[Rule] = [UNPARSABLE]
    for pack in packs:
        try:
            module = import_module(pack)
        except ModuleNotFoundError as error:
            if error.name != pack:
                raise
            hint = " (in a source checkout, run `pip install -e .`)" if pack == BUILT_IN else ""
            raise UsageError(f"the rule pack {pack} is not installed{hint}") from error
        rules.extend(module.all_rules())
    by_code: dict[str, Rule] = {}
    for rule in rules:
        other = by_code.setdefault(rule.code, rule)
        if other is not rule:
            raise UsageError(f"two rules have the code {rule.code}: {_origin(other)} and {_origin(rule)}")
    return tuple(by_code[code] for code in sorted(by_code))


def _origin(rule: Rule) -> str:
    return f"{type(rule).__module__}.{type(rule).__qualname__}"


def find_rule(rules: Iterable[Rule], text: str) -> Rule:
    """The rule of that code or name. Raises UsageError that names the nearest one."""
    rules = list(rules)
    for rule in rules:
        if text.upper() == rule.code or text.lower() == rule.name:
            return rule
    raise UsageError(f"unknown rule '{text}'{nearest(text, [*(r.code for r in rules), *(r.name for r in rules)])}")


def nearest(text: str, candidates: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing where no candidate resembles the text."""
    spelling = {candidate.casefold(): candidate for candidate in candidates}
    matches = get_close_matches(text.casefold(), list(spelling), n=1, cutoff=0.5)
    return f" (did you mean '{spelling[matches[0]]}'?)" if matches else ""


def select_rules(
    rules: Sequence[Rule], select: Sequence[str], ignore: Sequence[str], extend_select: Sequence[str] = ()
) -> tuple[Rule, ...]:
    """The rules that the selectors (codes, prefixes of codes, names, ``ALL``) leave on.

    Where a rule is both selected and ignored the longer selector wins, and ``ignore`` on a tie. An empty ``select``
    stands for the rules that are on by default; a file that does not parse is reported unless AMP901 is ignored.
    Raises UsageError for a selector that matches nothing.
    """
    for selector in (*select, *ignore, *extend_select):
        if not any(_weight(selector, rule) for rule in rules):
            known = [ALL, *(rule.code for rule in rules), *(rule.name for rule in rules)]
            raise UsageError(f"unknown rule selector '{selector}'{nearest(selector, known)}")
    chosen = []
    for rule in rules:
        wanted = max((_weight(selector, rule) for selector in (*select, *extend_select)), default=0)
        if (not select and rule.default) or rule is UNPARSABLE:
            wanted = max(wanted, 1)
        unwanted = max((_weight(selector, rule) for selector in ignore), default=0)
        if wanted > unwanted:
            chosen.append(rule)
    return tuple(chosen)


def _weight(selector: str, rule: Rule) -> int:
    """How specifically a selector matches a rule; 0 where it does not."""
    if selector.lower() == rule.name:
        return 100
    if selector.upper() == ALL:
        return 1
    return len(selector) + 1 if selector and rule.code.startswith(selector.upper()) else 0
