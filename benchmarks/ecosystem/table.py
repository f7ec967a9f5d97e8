"""A result as text: a line for each release, a line for each rule, the total."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ecosystem.result import API

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ecosystem.result import Checked


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


def _row(name: str, checked: Sequence[Checked], width: int) -> str:
    files, size = sum(one.files for one in checked), sum(one.lines for one in checked)
    found, api = sum(len(one.findings) for one in checked), sum(one.api for one in checked)
    wall, cpu = sum(one.wall for one in checked), sum(one.cpu for one in checked)
    return f"{name:{width}} {files:6,} {size:9,} {found:8,} {api:6,} {density(checked):10.1f} {wall:7.1f} {cpu:7.1f}"


def _codes(one: Checked) -> str:
    counted = Counter(finding.code for finding in one.findings)
    return ", ".join(f"{code} {count}" for code, count in sorted(counted.items()))


def _rules(checked: Sequence[Checked]) -> list[str]:
    found = [(one.release, finding) for one in checked for finding in one.findings]
    text = [f"{'':7} {'findings':>8} {'releases':>8} {'errors':>7} {'proven':>7}"]
    for code in sorted({finding.code for _, finding in found}):
        rows = [(release, finding) for release, finding in found if finding.code == code]
        errors = sum(finding.severity == "error" for _, finding in rows)
        proven = sum(finding.certainty == "proven" for _, finding in rows)
        text.append(f"{code:7} {len(rows):8,} {len({release for release, _ in rows}):8} {errors:7,} {proven:7,}")
    return text
