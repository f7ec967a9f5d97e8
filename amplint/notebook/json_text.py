"""The JSON of a cell's source, rewritten: what holds lines that did not change keeps the text that it had."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from difflib import SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from amplint.frozen import dataclass
from amplint.notebook.json_places import read_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Change: TypeAlias = tuple[int, int, str]
"""The first and last offset of what is replaced, and the text that replaces it."""

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CHARACTER = re.compile(rf"{_HIGH}{_LOW}|\\u[0-9a-fA-F]{{4}}|\\.|.", re.DOTALL)
"""One character of a JSON string, as it is written."""


def rewritten(raw: str, old: str, new: str, *, ascii_only: bool) -> str:
    """``raw``, a string or an array of strings that are ``old`` together, in the same form for ``new``."""
    changes = list(_changes(old, new))
    if raw.startswith("["):
        return _array(raw, changes, ascii_only)
    return f'"{_string(raw[1:-1], changes, ascii_only)}"'


def lines_of(text: str) -> list[str]:
    """Lines with their endings, as Jupyter splits them into an array: at line feeds alone."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _changes(old: str, new: str) -> Iterator[Change]:
    """What turns the old lines into the new ones, in order."""
    before, after = lines_of(old), lines_of(new)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    for tag, first, last, new_first, new_last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[first], starts[last], "".join(after[new_first:new_last])


def _encoded(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)


def _string(raw: str, changes: Sequence[Change], ascii_only: bool) -> str:
    """The inside of a string with changes made."""
    characters = _CHARACTER.findall(raw)
    pieces, position = [], 0
    for start, end, text in changes:
        pieces += [*characters[position:start], _encoded(text, ascii_only)[1:-1]]
        position = end
    return "".join([*pieces, *characters[position:]])


@dataclass(slots=True)
class _Run:
    """Strings of an array that changes touch: from the first one to before the last; none where lines are inserted."""

    first: int
    last: int
    changes: list[Change]


def _runs(changes: Iterable[Change], starts: Sequence[int], ends: Sequence[int]) -> list[_Run]:
    """Which strings each change touches; changes of one string together."""
    runs: list[_Run] = []
    for change in changes:
        first = bisect_right(ends, change[0])
        last = max(first, bisect_left(starts, change[1]))
        if runs and first < runs[-1].last:
            runs[-1].last = max(last, runs[-1].last)
            runs[-1].changes.append(change)
        else:
            runs.append(_Run(first, last, [change]))
    return runs


def _array(raw: str, changes: Sequence[Change], ascii_only: bool) -> str:
    """An array of strings with changes made: strings that none touches stay, the others become one for each line."""
    strings = read_array(raw, 0).value
    *starts, total = accumulate((len(string.value) for string in strings), initial=0)
    ends = [*starts[1:], total][: len(strings)]
    borders = [1, *(string.end for string in strings)]
    gaps = [raw[border : string.start] for border, string in zip(borders, strings, strict=False)]
    opening, closing = gaps[0] if gaps else "", raw[borders[-1] :]
    usual = gaps[1] if len(gaps) > 1 else f",{opening or ' '}"

    written: list[tuple[str, str]] = []
    position = 0
    for run in [*_runs(changes, starts, ends), _Run(len(strings), len(strings), [])]:
        for index in range(position, run.first):
            written.append((gaps[index] if index else usual, raw[strings[index].start : strings[index].end]))
        text = "".join(string.value for string in strings[run.first : run.last])
        offset = [*starts, total][run.first]
        for start, end, content in reversed(run.changes):
            text = text[: start - offset] + content + text[end - offset :]
        written += [(usual, _encoded(line, ascii_only)) for line in lines_of(text)]
        position = run.last
    if not written:
        return "[]"
    return f"[{opening}{written[0][1]}{''.join(gap + text for gap, text in written[1:])}{closing}"
