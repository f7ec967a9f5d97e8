"""The lines of user code that a failure went through, quoted from their files."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.files import display_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADING = "the lines that it went through, the failing one last:"


def quoted(ways: Iterable[tuple[tuple[str, int], ...]]) -> Iterator[str]:
    """Each different way once: a heading, then ``file:row: source`` for each line."""
    for way in dict.fromkeys(way for way in ways if way):
        yield HEADING
        for filename, row in way:
            yield f"  {display_path(Path(filename))}:{row}: {linecache.getline(filename, row).strip()}"
