"""Families of rules: those whose codes begin alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.rule_base import CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule_base import Rule

TITLES = {
    "AMP1": "Operands that disagree",
    "AMP2": "Autograd Functions",
    "AMP3": "Range and support",
    "AMP4": "The training step",
    "AMP5": "Configuration",
    "AMP6": "API",
    "AMP9": "amplint's own",
}
"""What the built-in rules of a prefix are about."""

_PREFIX = re.compile(r"([A-Z]+\d{0,2})X*")


@dataclass(frozen=True, slots=True)
class Family:
    """Rules of one prefix; ``title`` is empty for those of a pack."""

    prefix: str
    title: str
    rules: tuple[Rule, ...]

    @property
    def heading(self) -> str:
        """``AMP1xx: Operands that disagree``."""
        digits = len(self.prefix) - len(self.prefix.rstrip("0123456789"))
        return self.prefix + "x" * (3 - digits) + (f": {self.title}" if self.title else "")


def family_of(text: str, rules: Iterable[Rule]) -> Family | None:
    """The family that a prefix (``AMP1``, ``AMP1x``, ``AMP1xx``) or a title names; None where it is neither."""
    titled = {title.casefold().removeprefix("the "): prefix for prefix, title in TITLES.items()}
    named = titled.get(" ".join(text.split()).casefold().removeprefix("the "))
    spelled = _PREFIX.fullmatch(text.upper())
    prefix = named or (spelled[1] if spelled is not None and not CODE.fullmatch(text.upper()) else None)
    if prefix is None:
        return None
    letters = prefix.rstrip("0123456789")
    found = tuple(rule for rule in rules if rule.code.startswith(prefix) and rule.code[:-3] == letters)
    return Family(prefix, TITLES.get(prefix, ""), found) if found else None
