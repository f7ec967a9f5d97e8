"""A result as text: a line for each release, a line for each rule, the total."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ecosystem.result import API

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ecosystem.result import Checked

RULE_COLUMNS = ("findings", "releases", "errors", "proven")


def lines(checked: Sequence[Checked]) -> list[str]:
    """The tables of a result."""
    width = max((len(str(one.release)) for one in checked), default=0)
    columns = f"{'files':>6} {'lines':>9} {'findings':>8} {API + 'xx':>6} {'per 10,000':>10} {'s':>7} {'CPU s':>7}"
    text = [f"{'':{width}} {columns}"]
    text += [_row(str(one.release), [one], width) + f"  {_codes(one)}".rstrip() for one in checked]
    text += [_row("all", checked, width), "", *_rules(checked), ""]
    text.append(f"'per 10,000' is findings per 10,000 lines, {API}xx left out")
    return text


def density(checked: Iterable[Checked]) -> float:
    """Findings per 10,000 lines, those about the API left out."""
    rows = list(checked)
    return 1e4 * sum(len(one.findings) - one.api for one in rows) / max(sum(one.lines for one in rows), 1)


def figures(checked: Sequence[Checked]) -> dict[str, int | float | dict[str, dict[str, int | float]]]:
    """What :mod:`figures` keeps: the totals, and a row for each release and each rule."""
    return {
        **_counts(checked),
        "releases": {str(one.release): _counts([one]) for one in checked},
        "rules": {code: dict(zip(RULE_COLUMNS, counts, strict=True)) for code, counts in _by_rule(checked)},
    }


def _counts(checked: Sequence[Checked]) -> dict[str, int | float]:
    return {
        "findings per 10,000 lines": round(density(checked), 2),
        "findings": sum(len(one.findings) for one in checked),
        f"findings of {API}xx": sum(one.api for one in checked),
        "lines": sum(one.lines for one in checked),
        "CPU seconds": round(sum(one.cpu for one in checked)),
    }


def _row(name: str, checked: Sequence[Checked], width: int) -> str:
    files, size = sum(one.files for one in checked), sum(one.lines for one in checked)
    found, api = sum(len(one.findings) for one in checked), sum(one.api for one in checked)
    wall, cpu = sum(one.wall for one in checked), sum(one.cpu for one in checked)
    return f"{name:{width}} {files:6,} {size:9,} {found:8,} {api:6,} {density(checked):10.1f} {wall:7.1f} {cpu:7.1f}"


def _codes(one: Checked) -> str:
    counted = Counter(finding.code for finding in one.findings)
    return ", ".join(f"{code} {count}" for code, count in sorted(counted.items()))


def _rules(checked: Sequence[Checked]) -> list[str]:
    head, *rest = RULE_COLUMNS
    text = [f"{'':7} {head:>8} " + " ".join(f"{name:>8}" for name in rest)]
    text += [f"{code:7} " + " ".join(f"{count:8,}" for count in counts) for code, counts in _by_rule(checked)]
    return text


def _by_rule(checked: Sequence[Checked]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each rule with its counts, in the order of :data:`RULE_COLUMNS`."""
    found = [(one.release, finding) for one in checked for finding in one.findings]
    for code in sorted({finding.code for _, finding in found}):
        rows = [(release, finding) for release, finding in found if finding.code == code]
        errors = sum(finding.severity == "error" for _, finding in rows)
        proven = sum(finding.certainty == "proven" for _, finding in rows)
        yield code, (len(rows), len({release for release, _ in rows}), errors, proven)
