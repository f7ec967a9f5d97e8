"""``amplint explain``: the documentation of one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplint.cli.main import write_out
from amplint.plugins import find_rule, load_rules
from amplint.rule import Evidence, Example, Rule, documentation

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIX = {
    "safe": "a safe fix, applied with --fix",
    "unsafe": "an unsafe fix, applied with --fix --unsafe-fixes",
    "display": "a rewrite that is shown and never applied",
    None: "none",
}


@click.command("explain")
@click.argument("rule")
def command(rule: str) -> None:
    """Explain RULE, a code such as AMP105 or a name such as index-write."""
    write_out("\n".join(_explanation(find_rule(load_rules(), rule))) + "\n")


def _explanation(rule: Rule) -> Iterator[str]:
    yield f"{rule.code} {rule.name}"
    yield "=" * (len(rule.code) + len(rule.name) + 1)
    yield ""
    yield documentation(rule)
    yield ""
    yield f"Severity: {rule.severity.value}"
    yield f"Fix: {_FIX[rule.fix.value if rule.fix is not None else None]}"
    if rule.evidence is Evidence.CITED:
        yield "Evidence: cited, not reproduced by a run; reported as a warning at most"
    if not rule.default:
        yield f"Off by default: turn it on with --extend-select {rule.code}"
    for title, examples in (("Reported", rule.bad), ("Not reported", rule.good)):
        for example in examples:
            yield ""
            yield f"{title}{_where(example)}:"
            yield ""
            yield from (f"    {line}".rstrip() for line in example.source.strip("\n").split("\n"))
    yield ""
    yield rule.url


def _where(example: Example) -> str:
    return f" under {example.scenario} on {example.device}" if example.scenario else ""
