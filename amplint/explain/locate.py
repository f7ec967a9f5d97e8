"""Where a frame of a traceback lies on this machine, and where its line is now."""

from __future__ import annotations

import os
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from amplint.explain.frames import Frame

MAX_FILES = 50_000
"""Files that are looked through for one that a traceback of another machine names."""

_PRUNED = ("__pycache__", "node_modules")


class Line(str, Enum):
    """``same``: the line is as the traceback shows it. ``unseen``: the traceback shows no source. ``moved``: the text
    stands in another row now. ``gone``: it is no longer in the file."""

    SAME = "same"
    UNSEEN = "unseen"
    MOVED = "moved"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Place:
    """A frame in a file that exists. ``row`` is where the frame's line is now, the traceback's own if it is gone."""

    frame: Frame
    path: Path
    row: int
    line: Line


class Locator:
    """Finds the files of frames: as given, relative to a folder, or by the end of their path under that folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate(self, frame: Frame) -> Place | None:
        """Where a frame lies; None where its file is not here, or several files under the folder match equally well."""
        source = self._given(frame) or self._similar(frame)
        if source is None:
            return None
        row, line = _row(frame, source)
        return Place(frame, source.path, row, line)

    def _given(self, frame: Frame) -> Source | None:
        try:
            path = self._folder / Path(frame.path).expanduser()
        except RuntimeError:
            return None
        return _read(Path(os.path.normpath(path)))

    def _similar(self, frame: Frame) -> Source | None:
        """The best match of the path's end. A file that shares its name only must hold the line, too."""
        scored = [
            (_common(frame.parts, path.parts), path) for path in self._by_name.get((frame.parts or ("",))[-1], ())
        ]
        best = max((score for score, _ in scored), default=0)
        candidates = [path for score, path in scored if score == best]
        if len(candidates) != 1:
            return None
        source = _read(candidates[0])
        if source is None or (best < 2 and _row(frame, source)[1] not in (Line.SAME, Line.MOVED)):
            return None
        return source

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        """The Python files under the folder by their names; hidden folders are left out."""
        found: dict[str, list[Path]] = {}
        count = 0
        for root, folders, names in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PRUNED)
            for name in names:
                if name.endswith(".py"):
                    found.setdefault(name, []).append(Path(root, name))
            count += len(names)
            if count > MAX_FILES:
                return {}
        return found


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """How many parts two paths share at their ends."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _read(path: Path) -> Source | None:
    try:
        source = Source(path, path.read_bytes()) if path.is_file() else None
        if source is not None:
            source.lines  # noqa: B018
    except (OSError, ValueError, SourceError):
        return None
    return source


def _row(frame: Frame, source: Source) -> tuple[int, Line]:
    if not frame.text:
        return frame.row, Line.UNSEEN if frame.row <= len(source.lines) else Line.GONE
    if _same(source.line(frame.row), frame.text):
        return frame.row, Line.SAME
    rows = [row for row, line in enumerate(source.lines, 1) if _same(line, frame.text)]
    if not rows:
        return frame.row, Line.GONE
    return min(rows, key=lambda row: (abs(row - frame.row), row)), Line.MOVED


def _same(line: str, text: str) -> bool:
    return line.split() == text.split()
