"""The code cells of a notebook as one Python program, and a changed program as the sources of its cells.

The program's text says itself where cells begin and which lines hold stand-ins (:mod:`amplint.notebook.layout`). Each
row of a cell is one row of the program, with the same columns; the end of a row may have a mark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.notebook.layout import END, HEAD, Layout, cell_mark, magic_mark
from amplint.notebook.magics import NOTHING, Magic, read_magics, stood_in
from amplint.notebook.placing import rows_of
from amplint.source import Source, SourceError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amplint.notebook.document import Cell, Notebook


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a notebook.

    ``refused`` are the cells that are no Python, which it leaves out, with the reason; a cell in another language is in
    neither. ``magics`` are the texts that stand-ins replace, by the numbers in their marks.
    """

    source: Source
    refused: tuple[tuple[Cell, SourceError], ...]
    magics: tuple[tuple[Magic, str], ...]

    @classmethod
    def of(cls, path: Path, notebook: Notebook) -> Program:
        """The program of a notebook's Python cells, in order."""
        word = _unused_word(notebook)
        pieces = [HEAD.format(word=word)]
        refused: list[tuple[Cell, SourceError]] = []
        magics: list[tuple[Magic, str]] = []
        for cell in notebook.cells:
            reading = read_magics(cell.text)
            if reading.other or "python" not in (cell.language or "python").lower():
                continue
            try:
                _refuse(stood_in(cell.text, list(reading.magics)))
            except SourceError as error:
                refused.append((cell, error))
                continue
            pieces += [cell_mark(word, cell.number), _marked(cell.text, reading.magics, word, len(magics)), "\n"]
            magics += [(magic, cell.text[magic.start : magic.end]) for magic in reading.magics]
        pieces.append(END.format(word=word))
        return cls(Source(path, "".join(pieces).encode()), tuple(refused), tuple(magics))

    def sources(self, changed: Source) -> dict[int, str]:
        """The sources of the cells that a changed program changes, by their numbers.

        Raises ValueError where the change took out a mark, or what stands in for a magic.
        """
        before, after = Layout.of(self.source), Layout.of(changed)
        if before is None or after is None or before.word != after.word or before.numbers != after.numbers:
            raise ValueError("the program no longer shows its cells")
        if _numbers(self.source.text, before.word) != _numbers(changed.text, after.word):
            raise ValueError("the program no longer shows its magics")
        texts = zip(before.numbers, before.texts(self.source), after.texts(changed), strict=True)
        return {number: self._restored(new, before.word) for number, old, new in texts if old != new}

    def _restored(self, text: str, word: str) -> str:
        """A cell with its magics in the place of their stand-ins."""
        return "".join(self._line(row, word) for row in rows_of(text))

    def _line(self, line: str, word: str) -> str:
        mark = magic_mark(word).search(line)
        if mark is None:
            return line
        magic, original = self.magics[int(mark["number"])]
        body, ending = line[: mark.start()], line[mark.end() :]
        if magic.stand_in == NOTHING:
            return body + original + ending
        body = body.removesuffix(" ")
        start = body.rindex(magic.stand_in) if body.endswith(magic.stand_in) else body.index(magic.stand_in)
        return body[:start] + original + body[start + len(magic.stand_in) :] + ending


def _numbers(text: str, word: str) -> list[str]:
    return magic_mark(word).findall(text)


def _unused_word(notebook: Notebook) -> str:
    """A word that no cell spells behind a ``#``."""
    number = 0
    while any(f"#nb{number}" in cell.text for cell in notebook.cells):
        number += 1
    return f"nb{number}"


def _marked(text: str, magics: Sequence[Magic], word: str, number: int) -> str:
    """A cell with stand-ins, each with its mark at the end of its row; the first has a number."""
    pieces, position = [], 0
    for index, magic in enumerate(magics, number):
        rest = re.compile(r"[^\r\n]*").match(text, magic.end)
        end = rest.end() if rest is not None else magic.end
        gap = "" if magic.stand_in == NOTHING else " "
        pieces.append(
            f"{text[position : magic.start]}{magic.stand_in}{text[magic.end : end]}{gap}#{word} magic {index}"
        )
        position = end
    return "".join([*pieces, text[position:]])


def _refuse(text: str) -> None:
    """Raise SourceError for a cell that is no Python."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SourceError("it holds half of a surrogate pair, which is no character")
    parse(text)
