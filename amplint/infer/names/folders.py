"""Where absolute imports of a file start, and which folders hold installed libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY_FOLDERS = ("site-packages", "dist-packages")


def root_of(folder: Path) -> tuple[Path, str]:
    """The folder that absolute imports start from in the files of a folder, and the dotted name of their package."""
    parts: list[str] = []
    while is_file(folder / "__init__.py") and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def is_file(path: Path) -> bool:
    """Whether there is a file that can be asked for; not so under a name too long, or in a folder closed to us."""
    try:
        return path.is_file()
    except OSError:
        return False
