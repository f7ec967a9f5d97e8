"""What doubts hide in whole releases, of which nobody said whether it is right."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ecosystem.releases import listed
from judged.rounds import Rounds
from wheels import requirements_in

from amplint.engine import check_file
from amplint.garbage import collect_after_file, collect_seldom
from doubts.labelled import OPTIONS, UNKNOWN, Labelled, names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from doubts.labelled import Shelf

MOST_BYTES = 2_000_000


def releases(wheels: Path | None) -> list[str]:
    """The releases of the ecosystem benchmark and of the fresh rounds, and those whose wheels are in a folder."""
    drawn = [line.split()[1] for line in Rounds().drawn.read_text(encoding="utf-8").splitlines()]
    more = requirements_in(wheels) if wheels is not None else []
    return sorted({*(release.requirement for release in listed()), *drawn, *more})


def of_releases(shelf: Shelf, wheels: Path | None) -> Iterator[Labelled]:
    """Every finding in each release that is had, told or not."""
    collect_seldom()
    for requirement in releases(wheels):
        folder = shelf.get(requirement)
        if folder is None:
            continue
        print(requirement, file=sys.stderr)
        package = requirement.partition("==")[0]
        for path in sorted(folder.rglob("*.py")):
            if path.stat().st_size <= MOST_BYTES:
                for finding in check_file(path, OPTIONS).findings:
                    yield Labelled(package, finding.code, names(finding), UNKNOWN)
                collect_after_file(path.stat().st_size)
