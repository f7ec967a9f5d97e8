"""How fixed files reach the disk, or are shown."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
import warnings
from contextlib import suppress
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
    """Give a file its content and mode in one step, whatever ends this process or the machine. Raises OSError.

    A child writes, where there are any, in a session of its own, so that what ends this process or its whole group does
    not end the writing: no system has a call that puts a nameless file in the place of another, and what ended between
    two calls would leave a copy behind.
    """
    child = _fork()
    if child is None:
        _replace(target, data, mode)
    elif child == 0:
        status = errno.EINTR
        try:
            os.setsid()
            _replace(target, data, mode)
            status = 0
        except OSError as error:
            status = error.errno or errno.EIO
        finally:
            os._exit(status)
    else:
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except ChildProcessError:  # Whoever started this process has it ignore SIGCHLD, and with that the status.
            status = 0 if target.read_bytes() == data else errno.EIO
        if status:
            raise OSError(abs(status), os.strerror(status) if status > 0 else f"ended by signal {-status}")


def _fork() -> int | None:
    """As os.fork, or None where there is no such thing, or no process to be had."""
    if not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, whose locks the child takes none of
        return os.fork()
    return None


def _replace(target: Path, data: bytes, mode: int) -> None:
    written = _nameless(target.parent)
    if written is None:
        written, temporary = tempfile.mkstemp(prefix=_prefix(target), dir=target.parent)
    else:
        temporary = ""
    try:
        with os.fdopen(written, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(temporary or written, mode)
            os.fsync(written)
            if not temporary:
                temporary = _named(written, target)
        os.replace(temporary, target)
    except BaseException:
        if temporary:
            os.unlink(temporary)
        raise


def _prefix(target: Path) -> str:
    return f".{target.name}."


def _nameless(folder: Path) -> int | None:
    """A new file in a folder that goes with this process, until it gets a name; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:
        return None


def _named(handle: int, target: Path) -> str:
    """Give a nameless file a name beside its target."""
    while True:
        name = str(target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}"))
        try:
            # Python follows the link to the file only where it is given a folder, which an absolute path does not need.
            os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle, follow_symlinks=True)
        except FileExistsError:
            continue
        return name


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
