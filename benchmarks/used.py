"""Which packages and repositories the project has used already, so that nothing is drawn from them at first sight."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from halves import project

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARKS = Path(__file__).resolve().parent
_FIELDS = ("repo", "package", "library")
"""Under which the rows of the benchmarks name what they were taken from."""
_PINNED = re.compile(r"""["']([A-Za-z0-9][\w.-]*)==\d""")


def used(folder: Path = BENCHMARKS, *, besides: tuple[Path, ...] = ()) -> dict[str, str]:
    """Each project that a list below ``folder`` names, and the list that does. The lists of ``besides`` are left out.

    A list is a text file with a name on each line (``name==version``, and what stands before it, such as a date), a
    file of JSON lines, or a program that pins a release. Names are compared as :func:`halves.project` has them.
    """
    found: dict[str, str] = {}
    readers = {"*.txt": _listed, "*.jsonl": _rows, "*.py": _pinned}
    for pattern, names in readers.items():
        for path in sorted(folder.rglob(pattern)):
            if path not in besides:
                for name in names(path):
                    found.setdefault(project(name), path.relative_to(folder).as_posix())
    return found


def _listed(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words:
            yield words[-1].partition("==")[0]


def _rows(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield from (row[field] for field in _FIELDS if isinstance(row.get(field), str))


def _pinned(path: Path) -> Iterator[str]:
    return iter(_PINNED.findall(path.read_text(encoding="utf-8")))
