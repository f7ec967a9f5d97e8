"""How fixed files reach the disk, or are shown."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from amplint.files import display_path, place_name
from amplint.notebook import is_notebook
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path


class FixError(Exception):
    """A fixed file could not be written; the original stands."""


def write_atomically(path: Path, before: bytes, after: bytes) -> None:
    """Replace a file's content in one step, keeping its mode; a link's target is written, not the link.

    Raises FixError where that fails or where the file no longer holds ``before``.
    """
    target = path.resolve()
    try:
        if target.read_bytes() != before:
            raise FixError(f"{path} changed while it was being fixed; left alone")
        put(target, after, target.stat().st_mode)
    except OSError as error:
        raise FixError(f"cannot write {path}: {error.strerror or error}") from error


def put(target: Path, data: bytes, mode: int) -> None:
    """Give a file its content and mode in one step. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def unified_diff(path: Path, before: bytes, after: bytes) -> str:
    """The change as a unified diff with ``a/`` and ``b/`` names relative to the current folder; of a notebook, one for
    each cell that changes."""
    if not is_notebook(path):
        return _diff(display_path(path), Source(path, before).lines, Source(path, after).lines)
    from amplint.notebook.excerpts import cells_of

    old, new = cells_of(path, before), cells_of(path, after)
    return "".join(_diff(place_name(path, cell), _ended(old[cell]), _ended(new[cell])) for cell in old)


def _ended(cell: Source) -> list[str]:
    """The lines of a cell, whose last one has an ending in few notebooks, and means nothing."""
    return Source(cell.path, cell.data.removesuffix(b"\n") + b"\n").lines


def _diff(name: str, before: list[str], after: list[str]) -> str:
    from difflib import unified_diff as diff_lines

    lines = diff_lines(before, after, fromfile=f"a/{name}", tofile=f"b/{name}", lineterm="\n")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
