"""A notebook file: its code cells, and how it is written when they change."""

from __future__ import annotations

from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.notebook.json_places import Value, read_any, read_array, read_document, read_object
from amplint.notebook.json_text import rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

UPGRADE = "open and save it in Jupyter, or run jupyter nbconvert --to notebook --inplace on it"


class NotebookError(Exception):
    """A file is no notebook that can be read; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number from 1 among all cells, its source, and where that stands in the notebook's text.

    ``language`` is what the cell itself names, empty for the notebook's own.
    """

    number: int
    text: str
    start: int
    end: int
    language: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's text as it is written, its code cells, and the language of its kernel."""

    text: str
    cells: tuple[Cell, ...]
    language: str

    @classmethod
    def read(cls, data: bytes) -> Notebook:
        """Read a notebook of format 4. Raises NotebookError."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotebookError("it is not UTF-8") from error
        if not text.strip():
            raise NotebookError("it is empty, and no notebook")
        try:
            top = read_document(text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text, _top)
        except JSONDecodeError as error:
            raise NotebookError(f"it is not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from error
        except RecursionError as error:
            raise NotebookError("its JSON is nested too deeply") from error
        return cls(text, *_contents(top.value))

    def with_sources(self, sources: Mapping[int, str]) -> bytes:
        """The notebook with other sources of some cells, by their numbers; all else stays byte for byte."""
        ascii_only = self.text.isascii() and "\\u" in self.text
        pieces, position = [], 0
        for cell in self.cells:
            new = sources.get(cell.number, cell.text)
            if new != cell.text:
                source = rewritten(self.text[cell.start : cell.end], cell.text, new, ascii_only=ascii_only)
                pieces += [self.text[position : cell.start], source]
                position = cell.end
        return "".join([*pieces, self.text[position:]]).encode()


def _top(text: str, at: int) -> Value:
    if not text.startswith("{", at):
        return read_any(text, at)
    return read_object(text, at, {"cells": _cells})


def _cells(text: str, at: int) -> Value:
    if not text.startswith("[", at):
        return read_any(text, at)
    return read_array(text, at, lambda text, at: (read_object if text.startswith("{", at) else read_any)(text, at))


def _contents(top: Any) -> tuple[tuple[Cell, ...], str]:
    """The code cells of a decoded notebook, and its language. Raises NotebookError."""
    if not isinstance(top, dict):
        raise NotebookError("it is JSON, but no notebook")
    version = top["nbformat"].value if "nbformat" in top else 4
    if "worksheets" in top or (isinstance(version, int) and version < 4):
        raise NotebookError(f"it is in notebook format {version if version != 4 else 3}: {UPGRADE}")
    if "cells" not in top or not isinstance(top["cells"].value, list):
        raise NotebookError("it is JSON without cells, and no notebook")
    cells = (_cell(number, value.value) for number, value in enumerate(top["cells"].value, 1))
    metadata = top["metadata"].value if "metadata" in top else None
    language = _text(metadata, "language_info", "name") or _text(metadata, "kernelspec", "language")
    return tuple(cell for cell in cells if cell is not None), language


def _cell(number: int, members: Any) -> Cell | None:
    """A code cell; None for another kind. Raises NotebookError."""
    if not isinstance(members, dict):
        raise NotebookError(f"its cell {number} is no JSON object")
    kind = members.get("cell_type")
    if kind is None or kind.value != "code":
        return None
    source = members.get("source")
    parts = [] if source is None else [source.value] if isinstance(source.value, str) else source.value
    if source is None or not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise NotebookError(f"its cell {number} has no source")
    metadata = members["metadata"].value if "metadata" in members else None
    return Cell(number, "".join(parts), source.start, source.end, _text(metadata, "vscode", "languageId"))


def _text(value: Any, *keys: str) -> str:
    """A text in nested objects; empty where it is not there."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
