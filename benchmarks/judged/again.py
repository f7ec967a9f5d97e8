"""Which findings of the rounds amplint no longer tells, in preview or not: what was mended since they were judged."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ecosystem.checking import CheckError, check
from ecosystem.releases import Release
from figures.results import version

from amplint.judge.doubts import PREVIEW

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from judged.rounds import Drawn

_Told = frozenset[tuple[str, int, str]]
"""What is told of a release: path, line and code of each finding."""


def checked(rows: Iterable[Drawn], folder: Path, jobs: int, seconds: float) -> dict[tuple[str, str], _Told]:
    """What amplint tells now of the releases of some rows that lie in a folder, ``NAME-VERSION`` or
    ``OWNER__NAME-COMMIT`` each, by name and version."""
    releases = sorted({(one.place.package, one.place.release) for one in rows})
    lying = [one for one in releases if _folder_of(folder, *one).is_dir()]
    with ThreadPoolExecutor(jobs) as executor:
        told = executor.map(partial(_told, folder, seconds), lying)
        return {release: found for release, found in zip(lying, told, strict=True) if found is not None}


def marked(row: Drawn, told: Mapping[tuple[str, str], _Told]) -> Drawn:
    """A row that says whether it is told now, where that is known."""
    found = told.get((row.place.package, row.place.release))
    if found is None:
        return row
    return replace(row, gone="" if (row.place.path, row.place.line, row.code) in found else version())


def _told(folder: Path, seconds: float, release: tuple[str, str]) -> _Told | None:
    """None where amplint fails, which is said on standard error."""
    try:
        found = check(Release(*release), _folder_of(folder, *release), 1, PREVIEW.codes, seconds)
    except CheckError as error:
        print(error, file=sys.stderr)
        return None
    return frozenset((one.path, one.line, one.code) for one in found.findings)


def _folder_of(folder: Path, package: str, release: str) -> Path:
    return folder / f"{package.replace('/', '__')}-{release}"
