"""How fixed files reach the disk, or are shown."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from amplint.files import display_path
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
    """The change as a unified diff with ``a/`` and ``b/`` names relative to the current folder."""
    from difflib import unified_diff as diff_lines

    name = display_path(path)
    lines = diff_lines(
        Source(path, before).lines, Source(path, after).lines, fromfile=f"a/{name}", tofile=f"b/{name}", lineterm="\n"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
