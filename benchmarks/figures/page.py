"""``docs/figures.md``: what is kept of the benchmarks, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from figures.results import Result

NOTE = "<!-- Written by python benchmarks/figures. Run the benchmarks with --figures. -->\n\n"
SIDES = {"seen": "seen", "first_sight": "first sight"}
_INTRODUCTION = """\
How well amplint does, poor figures too. *Seen* is code that was read while amplint was mended. *First sight* is code
that nobody had looked at for that when it was measured: this is what to expect of it on your own. A benchmark is run
again with the command beside it, and `CONTRIBUTING.md` says what each one needs.
"""


def page(results: Sequence[Result]) -> str:
    """The text of the page."""
    return NOTE + "\n".join(_lines(results)) + "\n"


def _lines(results: Sequence[Result]) -> Iterator[str]:
    yield from ("Figures", "=======", "", *_INTRODUCTION.splitlines())
    yield from ("", "| benchmark | amplint | measured on |", "|---|---|---|")
    yield from (f"| [{one.name}](#{one.name}) | {one.version} | {one.date} |" for one in results)
    for one in results:
        yield from ("", one.name, "-" * len(one.name), "", one.about)
        yield from ("", "```sh", one.command, "```")
        yield from _single(one)
        for title, side, table in _tables(one):
            yield from ("", f"**{title}** ({side})", "", *_table(table))


def _single(result: Result) -> Iterator[str]:
    """The figures that are one value, seen and at first sight side by side."""
    sides = {side: getattr(result, name) for name, side in SIDES.items() if getattr(result, name)}
    names = dict.fromkeys(n for figures in sides.values() for n, v in figures.items() if not isinstance(v, Mapping))
    if names:
        yield from ("", f"| | {' | '.join(sides)} |", f"|---{'|---:' * len(sides)}|")
    for name in names:
        yield f"| {_cell(name)} | {' | '.join(shown(figures.get(name)) for figures in sides.values())} |"


def _tables(result: Result) -> Iterator[tuple[str, str, Mapping[str, Mapping[str, Any]]]]:
    sides = {side: getattr(result, name) for name, side in SIDES.items()}
    for title in dict.fromkeys(n for figures in sides.values() for n, v in figures.items() if isinstance(v, Mapping)):
        for side, figures in sides.items():
            if figures.get(title):
                yield title, side, figures[title]


def _table(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    yield f"| | {' | '.join(map(_cell, columns))} |"
    yield f"|---{'|---:' * len(columns)}|"
    for name, row in rows.items():
        yield f"| {_cell(name)} | {' | '.join(shown(row.get(column)) for column in columns)} |"


def shown(value: Any) -> str:
    """A value as the page shows it; nothing for what was not measured.

    >>> shown((44, 120))
    '44 of 120 (37%)'
    """
    if value is None:
        return ""
    if isinstance(value, tuple):
        part, whole = value
        return f"{part:,} of {whole:,} ({100 * part / whole:.0f}%)" if whole else "none"
    return _cell(value) if isinstance(value, str) else f"{value:,}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
