"""What tells calls of one callable apart: their arguments, which of them are plain, the setting of their operands."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from amplint.data._rules import Setting

if TYPE_CHECKING:
    from amplint.data._measure import Facts

UNKNOWN = "unknown"
#: An equation that sums over nothing: another operation than the one named.
OUTER = "equation=outer"
NUMBERS = (bool, int, float)


def progress(text: str) -> None:
    """Say on stderr how far the generator is, and what it found odd."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def plainness(fact: Facts) -> tuple[int, int, int]:
    """Calls with no switch on, then those with fewer arguments, show the usual behaviour."""
    given = fact.call.given()
    switched_on = [name for name in given if name.endswith(("=True", OUTER))]
    return len(switched_on), len([name for name in given if not name.endswith("=False")]), len(given)


def telling_arguments(group: list[Facts], base: list[Facts]) -> list[list[str]]:
    """Parameters that all calls of the group pass and none of the base does; else one such parameter for each call."""
    base_given = set().union(*[f.call.given() for f in base])
    extra = [f.call.given() - base_given for f in group]
    common = set.intersection(*extra)
    if common:
        switches = sorted(name for name in common if name.endswith("=True"))
        return [switches or sorted(name for name in common if name.isidentifier()) or sorted(common)]
    single = sorted({min(names) for names in extra if len(names) == 1})
    return [[name] for name in single] if all(extra) else []


def is_even(fact: Facts) -> bool:
    """Whether no tensor without dimensions stands beside one with some."""
    return len({dims > 0 for dims in fact.operands.values()}) < 2


def setting_of(fact: Facts, tensors: list[str]) -> Setting:
    """The dimensions of a call's operands, and the Python numbers that it has where others have tensors."""
    kinds = {type(value) for name, value in fact.call.named() if name in tensors and type(value) in NUMBERS}
    return Setting(fact.operands, frozenset(kinds))
