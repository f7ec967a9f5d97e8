"""What files hold: what stands on disk, or what a run of fixes has made of them and not yet written."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Contents = Mapping[Path, bytes]


class _Standing:
    """The contents that go before those on disk, by path without links; ``age`` counts their changes."""

    def __init__(self) -> None:
        self.contents: Contents = {}
        self.age = 0

    def change(self, contents: Contents) -> None:
        self.contents = contents
        self.age += 1


_STANDING = _Standing()


def stand(contents: Contents) -> None:
    """Let files be read as if they held this, until the process ends."""
    _STANDING.change({real(path): data for path, data in contents.items()})


def look_again() -> None:
    """Let what was found in other files so far be found anew: files on disk may have changed since."""
    _STANDING.change(_STANDING.contents)


@contextmanager
def standing(contents: Contents) -> Iterator[None]:
    """Let files be read as if they held this."""
    before = _STANDING.contents
    if not contents and not before:
        yield
        return
    stand(contents)
    try:
        yield
    finally:
        _STANDING.change(before)


def read(path: Path) -> bytes:
    """What a file holds. Raises OSError."""
    if _STANDING.contents:
        data = _STANDING.contents.get(real(path))
        if data is not None:
            return data
    return path.read_bytes()


def age() -> int:
    """A number that changes whenever files come to hold something else."""
    return _STANDING.age


def real(path: Path) -> Path:
    """The path of the file itself, whatever links lead there."""
    return Path(os.path.realpath(path))
