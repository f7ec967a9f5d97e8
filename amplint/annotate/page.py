"""The page of ``amplint dtypes``: sources coloured by dtype in every scenario, in one HTML file complete in itself.

The scenario is switched by style rules alone, so that a reader without scripts loses the origins only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from amplint.annotate.changes import Changes
from amplint.annotate.hues import HUES, hue
from amplint.annotate.markup import Element, elements_of, escape, lines
from amplint.annotate.notes import Note, shown
from amplint.annotate.origins import Steps
from amplint.annotate.rows import Row
from amplint.files import display_path
from amplint.html_page import embedded, filled

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from amplint.annotate.origins import Place
    from amplint.annotate.rows import FileDtypes
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.source import Span

_K = TypeVar("_K", bound="Hashable")

_UNKNOWN = -1
"""Stands for a dtype that is not known, in the page's data."""


def render(files: Sequence[FileDtypes], scenarios: Sequence[Scenario], first: Scenario, device: str) -> str:
    """The page. Every file was inferred under ``scenarios``; ``first`` is the one that is shown when it opens."""
    page = _Page([str(file.source.path) for file in files])
    sections = [page.section(number, file) for number, file in enumerate(files)]
    names = [page_name(Path(file.source.path)) for file in files]
    parts = {
        "title": escape(names[0] if len(names) == 1 else f"{len(names)} files"),
        "device": escape(device),
        "rules": _rules(list(page.patterns), len(scenarios)),
        "inputs": "".join(
            f'<input type="radio" class="pick" name="scenario" id="s{i}"{" checked" if s == first else ""}>'
            for i, s in enumerate(scenarios)
        ),
        "labels": "".join(f'<label for="s{i}">{escape(s.name)}</label>' for i, s in enumerate(scenarios)),
        "legend": _legend(page.dtypes),
        "known": "".join(_known(files, lane) for lane in range(len(scenarios))),
        "files": "\n".join(sections),
        "data": embedded({"scenarios": [s.name for s in scenarios], **page.data()}),
    }
    return filled("amplint.annotate", "page", **parts)


def page_name(path: Path) -> str:
    """Relative to the current folder, else the file and its folder: a page says nothing of the machine."""
    name = display_path(path)
    return "/".join(path.parts[-2:]) if Path(name).is_absolute() else name


class _Page:
    """What the files of a page share: tables of dtypes, places and names, which the data refers to by number."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths: dict[str, int] = {}
        for path in paths:
            _number(self.paths, path)
        self.shown = len(self.paths)
        self._failing: dict[Span, tuple[int, ...]] = {}
        self.dtypes: dict[tuple[str, ...], int] = {}
        self.patterns: dict[tuple[str, ...], int] = {}
        """The styles of an expression in the scenarios, which its class stands for."""
        self.places: dict[Place, int] = {}
        self.expressions: list[list[int]] = []
        self.facts: list[list[list[Any]]] = []
        self.steps: list[list[list[list[Any]]]] = []

    def section(self, number: int, file: FileDtypes) -> str:
        """One file's source with its notes."""
        elements = elements_of(_with_failing(file))
        self._failing = _lanes_of(file)
        offset = len(self.expressions)
        lanes = [Steps(lane) for lane in range(len(file.scenarios))]
        facts: dict[str, int] = {}
        for element in elements:
            fact = json.dumps(self._fact(element.row, lanes))
            parent = element.parent + offset if element.parent >= 0 else -1
            self.expressions.append([number, _number(facts, fact), parent, element.row.span.start.row])
        self.facts.append([json.loads(fact) for fact in facts])
        self.steps.append([self._steps(steps) for steps in lanes])
        tags = [self._tag(element, index + offset) for index, element in enumerate(elements)]
        notes = _notes(file)
        rows = "".join(
            f'<div class="row" id="f{number}L{row}"><a class="number" href="#f{number}L{row}">{row}</a>'
            f"<code>{text}</code>{notes.get(row, '')}</div>\n"
            for row, text in enumerate(lines(file.source, elements, tags), start=1)
        )
        name = escape(page_name(file.source.path))
        return f'<details class="panel file" open><summary>{name}</summary><div class="lines">\n{rows}</div></details>'

    def data(self) -> dict[str, Any]:
        """For the script: everything that is told of an expression."""
        places = [[_number(self.paths, p.filename), p.span.start.row, p.what] for p in self.places]
        return {
            "files": [page_name(Path(path)) for path in self.paths],
            "shown": self.shown,
            "dtypes": [[hue(dtype), shown(dtype)] for dtype in self.dtypes],
            "places": places,
            "expressions": self.expressions,
            "facts": self.facts,
            "steps": self.steps,
        }

    def _fact(self, row: Row, lanes: Sequence[Steps]) -> list[Any]:
        """Whether it may be no tensor; for each scenario the dtype and the steps that decided it."""
        dtypes = [_UNKNOWN if dtype is None else _number(self.dtypes, dtype) for dtype in row.dtypes]
        return [int(row.maybe), *([dtype, steps.of(row)] for dtype, steps in zip(dtypes, lanes, strict=True))]

    def _steps(self, steps: Steps) -> list[list[Any]]:
        return [
            [
                _number(self.places, step.place),
                _number(self.dtypes, step.dtypes) if step.dtypes else _UNKNOWN,
                int(step.autocast),
                step.before,
            ]
            for step in steps.all
        ]

    def _tag(self, element: Element, number: int) -> str:
        row = element.row
        hues = tuple("none" if row.maybe else hue(dtype) for dtype in row.dtypes)
        fails = "".join(f" e{lane}" for lane in self._failing.get(row.span, ()))
        return f'<span class="p{_number(self.patterns, hues)}{fails}" data-e="{number}">'


def _lanes_of(file: FileDtypes) -> dict[Span, tuple[int, ...]]:
    """What fails, each with the scenarios in which it does."""
    found: dict[Span, tuple[int, ...]] = {}
    for one in file.failing:
        found[one.span] = tuple(sorted({*found.get(one.span, ()), *one.lanes}))
    return found


def _with_failing(file: FileDtypes) -> list[Row]:
    """The rows, and one for each thing that fails of which none is known."""
    known = {row.span for row in file.rows}
    unknown = (None,) * len(file.scenarios)
    return [*file.rows, *(Row(span, unknown, None) for span in _lanes_of(file) if span not in known)]


def _known(files: Sequence[FileDtypes], lane: int) -> str:
    """How many dtypes are known in one scenario."""
    counts = [file.known(lane) for file in files]
    known, total = sum(known for known, _ in counts), sum(total for _, total in counts)
    return f'<span class="known s{lane}">dtype known of {known:,} of {total:,} expressions</span>'


def _number(table: dict[_K, int], key: _K) -> int:
    """The number of a key, a new one for a new key."""
    return table.setdefault(key, len(table))


def _notes(file: FileDtypes) -> dict[int, str]:
    """What each line does to dtypes: every different note once, with the scenarios that it is for as classes."""
    changes = Changes(file)
    told: dict[Note, list[int]] = {}
    for lane in range(len(file.scenarios)):
        for note in changes.notes(lane):
            told.setdefault(note, []).append(lane)
    of_row: dict[int, list[str]] = {}
    for one in file.failing:
        classes = ["note", "fails", *(f"s{lane}" for lane in one.lanes)]
        text = f'<span class="{" ".join(classes)}">error {one.code} {escape(one.name)}</span>'
        of_row.setdefault(one.span.start.row, []).append(text)
    for note, lanes in sorted(told.items(), key=lambda item: (item[0].at, item[1])):
        classes = ["note", hue(note.after), *(["changed"] if note.before else []), *(f"s{lane}" for lane in lanes)]
        of_row.setdefault(note.at.row, []).append(f'<span class="{" ".join(classes)}">{escape(note.text)}</span>')
    return {row: f'<span class="notes">{"".join(spans)}</span>' for row, spans in of_row.items()}


def _rules(patterns: Sequence[tuple[str, ...]], scenarios: int) -> str:
    """Which style each expression, and which notes, show while a scenario is chosen."""
    return "\n".join(rule for lane in range(scenarios) for rule in _rules_of(patterns, lane))


def _rules_of(patterns: Sequence[tuple[str, ...]], lane: int) -> Iterator[str]:
    chosen = f"#s{lane}:checked~"
    for name in HUES:
        classes = ",".join(f".p{number}" for number, pattern in enumerate(patterns) if pattern[lane] == name)
        if classes and name != "none":
            yield f"{chosen}main :is({classes}){{background:var(--{name}-ground)}}"
    yield f"{chosen}main .note.s{lane},{chosen}header .known.s{lane}{{display:inline-block}}"
    yield f"{chosen}main .e{lane}{{text-decoration:underline wavy var(--error);text-underline-offset:3px}}"
    yield f"{chosen}nav label[for=s{lane}]{{background:var(--accent);border-color:var(--accent);color:var(--panel)}}"
    yield f"#s{lane}:focus-visible~nav label[for=s{lane}]{{outline:2px solid var(--text);outline-offset:1px}}"


def _legend(dtypes: Iterable[tuple[str, ...]]) -> str:
    """A sample of each style that the page uses, with the dtypes that it stands for."""
    named: dict[str, list[str]] = {}
    for dtype in dtypes:
        named.setdefault(hue(dtype), []).append(shown(dtype))
    several = "several are possible"
    return "".join(
        f'<span class="chip {name}">{escape(several if name == "several" else ", ".join(named[name]))}</span>'
        for name in HUES
        if name in named
    )
