"""The page of a rule: its documentation, what it says of itself, and its examples, as Markdown.

``amplint explain CODE`` prints it, and ``docs/generate.py`` writes it to ``docs/rules/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Applicability
from amplint.judge.preview import of_rule
from amplint.rule_base import Evidence, documentation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.rule_base import Example, Rule

_FIX = {
    Applicability.SAFE: "a safe fix, applied with `--fix`",
    Applicability.UNSAFE: "an unsafe fix, applied with `--fix --unsafe-fixes`",
    Applicability.DISPLAY: "a rewrite that is shown and never applied",
    None: "none",
}


def rule_page(rule: Rule) -> str:
    """The page, ending in a line break."""
    return "\n".join(_lines(rule)) + "\n"


def _lines(rule: Rule) -> Iterator[str]:
    title = f"{rule.code} {rule.name}"
    summary, _, sections = documentation(rule).partition("\n\n")
    yield from (title, "=" * len(title), "", summary, "", *_properties(rule), "", sections)
    if rule.bad:
        yield from _heading("Reported")
        yield "A comment `# expect` ends each line on which a finding starts."
        yield from _examples(rule.bad)
    if rule.good:
        yield from _heading("Not reported")
        yield "No rule finds anything here."
        yield from _examples(rule.good)


def _properties(rule: Rule) -> Iterator[str]:
    yield f"- Severity: {rule.severity.value}"
    yield f"- Fix: {_FIX[rule.fix]}"
    if rule.devices:
        yield f"- Fails by the cast policy of: {', '.join(rule.devices)}"
    if rule.evidence is Evidence.CITED:
        yield "- Evidence: cited, not reproduced by a run; reported as a warning at most"
    if not rule.default:
        yield f"- Off by default: turn it on with `--extend-select {rule.code}`"
    for kind in of_rule(rule.code):
        yield f"- In preview, told with `--extend-select {rule.code}` or `--scenario`: {kind}"


def _heading(text: str) -> tuple[str, ...]:
    return ("", text, "-" * len(text))


def _examples(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield ""
        if example.scenario is not None:
            yield from (f"Under `{example.scenario}`, by the cast policy of {example.device}:", "")
        yield from ("```python", example.source.strip("\n"), "```")
