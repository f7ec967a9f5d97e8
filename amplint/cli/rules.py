"""``amplint rules``: the list of rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from amplint.cli.main import write_out
from amplint.cli.options import format_option, no_plugins_option
from amplint.judging import rules_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule_base import Rule


def as_json(rule: Rule) -> dict[str, Any]:
    """One rule with the keys of the contract."""
    return {
        **{key: getattr(rule, key) for key in ("code", "name", "summary")},
        "severity": rule.severity.value,
        "fix": rule.fix.value if rule.fix is not None else "none",
        "default": rule.default,
        "evidence": rule.evidence.value,
        "url": rule.url,
    }


@click.command("rules")
@format_option("text", "json")
@no_plugins_option
def command(output_format: str, no_plugins: bool) -> None:
    """List the rules: the built-in ones, and those of the rule packs that are installed or that the configuration of
    this folder names.
    """
    rules = rules_here(plugins=not no_plugins)
    if output_format == "json":
        write_out(json.dumps([as_json(rule) for rule in rules], indent=2) + "\n")
    else:
        write_out(as_text(rules))


def as_text(rules: Iterable[Rule]) -> str:
    """One line a rule."""
    listed = [as_json(rule) for rule in rules]
    widths = {key: max(len(rule[key]) for rule in listed) for key in ("code", "name", "fix")}
    return "".join(
        "  ".join([*(rule[key].ljust(width) for key, width in widths.items()), rule["summary"]])
        + ("\n" if rule["default"] else " (off by default)\n")
        for rule in listed
    )
