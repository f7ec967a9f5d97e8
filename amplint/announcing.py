"""Rules of which an index tells what is known before they are imported: one row for each module with one rule."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from amplint.finding import Applicability, Severity
from amplint.rule_base import Announced, Evidence, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENUMERATIONS = {"severity": Severity, "evidence": Evidence, "fix": Applicability}
"""The attributes of which a row has the value, so that an index imports nothing."""


class _InModule(Announced):
    module: ClassVar[str]

    def imported(self) -> Rule:
        rule = _imported(self.module, self.code)
        rule.pack = self.pack
        return rule

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes, which each get all rules with every file, get the rule itself."""
        return type(self.imported()), (), {"pack": self.pack}


def announced(module: str, row: Mapping[str, Any]) -> Announced:
    """The rule of a module, of which a row says what is known."""
    known = {name: _ENUMERATIONS[name](value) if name in _ENUMERATIONS else value for name, value in row.items()}
    made: _InModule = type(module, (_InModule,), {**known, "module": module})()
    return made


@cache
def _imported(module: str, code: str) -> Rule:
    for rule in rules_in(module):
        if rule.code == code:
            return rule
    raise LookupError(f"the index of rules is out of date: {module} has no {code}")


def rules_in(module: str) -> Iterator[Rule]:
    """One instance of every rule class of a module's own, not of an imported one or a base without a code."""
    for value in vars(import_module(module)).values():
        own = isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module
        if own and hasattr(value, "code"):
            yield value()


def row_of(rule: Rule) -> dict[str, Any]:
    """What an index tells of a rule: all that is not so of every rule that says nothing."""
    names = [name for name in Announced.__annotations__ if name != "pack"]
    told = {name: value for name in names if (value := getattr(rule, name)) != getattr(Announced, name, None)}
    return {name: value.value if name in _ENUMERATIONS else value for name, value in told.items()}
