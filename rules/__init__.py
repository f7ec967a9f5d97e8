"""amplint's built-in rules, installed as the package ``amplint_rules``: one file a rule and nothing else.

The package is found as any third-party pack is, by its :func:`all_rules`. To add a rule, add a file with one subclass
of :class:`amplint.rule.Rule`; no list has to be edited: ``index.py``, which docs/generate.py writes, only spares a
check the import of rules that no file needs.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from amplint.announcing import announced, rules_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule_base import Announced, Rule

_INDEX = "index"


def all_rules() -> list[Rule]:
    """One instance of every rule class in this package, by code."""
    return sorted(_in(_modules()), key=lambda rule: rule.code)


@cache
def announced_rules() -> tuple[Announced, ...]:
    """The same, imported only where the index does not have them."""
    names = _modules()
    rows = {name: row for name, row in import_module(f".{_INDEX}", __name__).ROWS.items() if name in names}
    known = [announced(f"{__name__}.{name}", row) for name, row in rows.items()]
    return tuple(sorted([*known, *_in(names - rows.keys())], key=lambda rule: rule.code))


def _modules() -> set[str]:
    return {info.name for info in pkgutil.iter_modules(__path__)} - {_INDEX}


def _in(names: Iterable[str]) -> list[Rule]:
    return [rule for name in names for rule in rules_in(f"{__name__}.{name}")]
