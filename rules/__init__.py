"""amplint's built-in rules, installed as the package ``amplint_rules``: one file a rule and nothing else.

The package is found as any third-party pack is, by its :func:`all_rules`. To add a rule, add a file with one subclass
of :class:`amplint.rule.Rule`; no list has to be edited.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TypeGuard

from amplint.rule import Rule


def all_rules() -> list[Rule]:
    """One instance of every rule class in this package, by code."""
    rules: list[Rule] = []
    for info in pkgutil.iter_modules(__path__):
        module = import_module(f".{info.name}", __name__)
        rules.extend(value() for value in vars(module).values() if _is_rule(value, module.__name__))
    return sorted(rules, key=lambda rule: rule.code)


def _is_rule(value: object, module: str) -> TypeGuard[type[Rule]]:
    """Whether a module's value is a rule class of its own, not an imported one or a base without a code."""
    return isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module and hasattr(value, "code")
