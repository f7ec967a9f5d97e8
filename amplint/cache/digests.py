"""What files hold, as short digests: read once, then known by their size and time of change."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Known = dict[str, tuple[int, int, str]]
"""By path: the size, the time of change in nanoseconds, and the digest of what it held."""
SETTLED_NS = 2_000_000_000
"""A file that changed later than this before it was read may change again and keep its time: clocks of file systems
are coarse."""
ABSENT = ""
"""The digest of what cannot be read."""


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Digests:
    """The digests of files, ``known`` from an earlier run where size and time are the same."""

    def __init__(self, known: Mapping[str, tuple[int, int, str]]) -> None:
        self._known = known
        self._found: Known = {}

    def of(self, path: str, stat: os.stat_result | None = None) -> str:
        """The digest of a file's bytes; ``stat`` is what the file system says of it, where that is known already."""
        found = self._found.get(path)
        if found is not None:
            return found[2]
        try:
            stat = stat or os.stat(path)
            size, changed = stat.st_size, stat.st_mtime_ns
            known = self._known.get(path)
            if known is not None and known[:2] == (size, changed):
                self._found[path] = known
                return known[2]
            began = time.time_ns()
            with open(path, "rb") as file:
                held = digest(file.read())
        except OSError:
            return ABSENT
        self._found[path] = (size, changed if changed < began - SETTLED_NS else -1, held)
        return held

    def found(self) -> Known:
        """What to know next time."""
        return self._found

    def still(self, again: Digests) -> bool:
        """Whether all files hold what they held when they were asked for, by digests that look ``again``."""
        return all(again.of(path) == held for path, (_, _, held) in self._found.items())
