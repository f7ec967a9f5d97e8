"""Cells of a notebook as people see them: for excerpts and diffs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.notebook.document import Cell, Notebook, NotebookError
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path


def cells_of(path: Path, data: bytes) -> dict[int, Source]:
    """The code cells of a notebook as source, by number; none where it cannot be read."""
    try:
        cells = Notebook.read(data).cells
    except NotebookError:
        return {}
    return {cell.number: as_source(path, cell) for cell in cells}


def as_source(path: Path, cell: Cell) -> Source:
    """A cell as source, its magics included."""
    return Source(path, cell.text.encode(errors="replace"))
