"""A fresh round: packages of the pool that nothing of the project has used are downloaded, checked and drawn from."""

from __future__ import annotations

import random
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from ecosystem import drawing, result
from ecosystem.checking import CheckError, check
from ecosystem.releases import Release
from figures.results import version
from halves import project
from used import used
from wheels import DownloadError, newest

from amplint.judge.doubts import PREVIEW
from judged.kinds import is_back
from judged.rounds import Drawn
from judged.rows import RowsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from ecosystem.result import Checked, Found

    from judged.rounds import Rounds


@dataclass(frozen=True, slots=True)
class Draw:
    """How to draw: ``count`` findings from at least ``packages`` packages, at most ``most`` of each. At least
    ``checked`` packages are checked for that, ``jobs`` at once, each within ``seconds``, also for the rules
    ``extra``."""

    count: int
    packages: int
    most: int
    checked: int
    seed: int
    jobs: int
    seconds: float
    extra: tuple[str, ...] = ()
    preview: int = 0
    """How many findings of kinds in preview to draw besides, from the same packages."""
    only: tuple[str, ...] = ()
    """The rules of which alone to draw what is of kinds in preview; without any, a draw of what is told."""
    unpacked: Path | None = None
    """Where sources lie, a folder ``NAME-VERSION`` or ``OWNER__NAME-COMMIT`` each, that are drawn from instead of
    downloaded packages."""


def taken(rounds: Rounds) -> dict[str, str]:
    """The projects that a list of the project names, and the list that does."""
    pool = (rounds.pool,)
    return {**used(rounds.pool.parent, besides=pool), **used(besides=pool)}


def candidates(rounds: Rounds, taken: Mapping[str, str], unpacked: Path | None = None) -> list[str]:
    """The names of the pool, or of what lies unpacked, that no list of the project uses; what is left out is said on
    standard error."""
    if unpacked is not None:
        names = sorted(_release(folder).package for folder in unpacked.iterdir())
    else:
        lines = (line.strip() for line in rounds.pool.read_text(encoding="utf-8").splitlines())
        names = [line for line in lines if line and not line.startswith("#")]
    for where in sorted({taken[project(name)] for name in names if project(name) in taken}):
        gone = [name for name in names if taken.get(project(name)) == where]
        print(f"used before, in {where}: {', '.join(gone)}", file=sys.stderr)
    return [name for name in names if project(name) not in taken]


@dataclass(frozen=True, slots=True)
class Round:
    """What was drawn: findings as amplint tells them, those of kinds in preview besides, and what was checked."""

    told: list[Drawn]
    preview: list[Drawn]
    checked: list[Checked]


def draw(names: Sequence[str], folder: Path, how: Draw, taken: Mapping[str, str] = MappingProxyType({})) -> Round:
    """Draw from packages, checked one by one in a random order until they are enough, but for those that hold the
    modules of a project in ``taken``: forks of what was used.

    ``folder`` gets the unpacked packages, what was found in each (a draw that was interrupted goes on from there),
    ``rows.jsonl`` for the readers, and ``preview.jsonl`` where findings of kinds in preview are drawn too. Raises
    RowsError where the packages are too few.
    """
    amplint = _same_version(folder)
    checked: list[Checked] = []
    every: list[Checked] = []
    for one in _checked(random.Random(how.seed).sample(sorted(names), len(names)), folder, how, taken):
        every.append(one)
        checked.append(_only(one, preview=bool(how.only)) if how.preview or how.only else one)
        drawn = drawing.draw(checked, how.count, how.seed, how.most)
        if len(checked) >= how.checked and len(drawn) == how.count and _packages(drawn) >= how.packages:
            drawing.save(drawn, folder / "rows.jsonl")
            besides = [_only(each, preview=True) for each in every]
            back = drawing.draw(besides, how.preview, how.seed, how.most)
            if how.preview:
                drawing.save(back, folder / "preview.jsonl")
            told, kept_back = ([Drawn.of(*found, amplint) for found in rows] for rows in (drawn, back))
            return Round(told, kept_back, checked)
    drawn = drawing.draw(checked, how.count, how.seed, how.most)
    raise RowsError(
        f"the pool is too small: {len(drawn)} of {how.count} findings, from {_packages(drawn)} packages of "
        f"{len(checked)} that were checked"
    )


def _only(checked: Checked, *, preview: bool) -> Checked:
    """A package with those of its findings that are of kinds in preview, or with the others."""
    kept = (found for found in checked.findings if _is_back(found) is preview)
    return replace(checked, findings=tuple(kept))


def _is_back(found: Found) -> bool:
    return is_back(found.code, found.scenarios, found.certainty, found.severity)


def _packages(drawn: Sequence[tuple[Release, Found]]) -> int:
    return len({release.package for release, _ in drawn})


def _same_version(folder: Path) -> str:
    """The version of amplint, which must be the one that began this draw. Raises RowsError."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, now = folder / "amplint.txt", version()
    if kept.exists() and kept.read_text(encoding="utf-8") != now:
        raise RowsError(f"{folder} was begun with amplint {kept.read_text(encoding='utf-8')}, this is {now}")
    kept.write_text(now, encoding="utf-8")
    return now


def _checked(names: Sequence[str], folder: Path, how: Draw, taken: Mapping[str, str]) -> Iterator[Checked]:
    """What is found in each package, of one finding of a rule on a line only the first. The order is that of the names,
    though as many packages as there are jobs are checked at once."""
    kept = folder / "checked.json"
    known = {one.release.package: one for one in result.load(kept)} if kept.exists() else {}
    extra = tuple(dict.fromkeys((*how.extra, *(PREVIEW.codes if how.preview else ()))))
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    ahead: deque[Future[Checked]] = deque()
    waiting = iter(names)
    with ThreadPoolExecutor(how.jobs) as executor:
        try:
            while True:
                for name in islice(waiting, 2 * how.jobs - len(ahead)):
                    ahead.append(executor.submit(_check, name, packages, known.get(name), how, extra, taken))
                if not ahead:
                    return
                try:
                    one = ahead.popleft().result()
                except (DownloadError, CheckError) as error:
                    print(str(error).splitlines()[0][:300], file=sys.stderr)
                    continue
                if one.release.package not in known:
                    known[one.release.package] = one
                    result.save(list(known.values()), kept)
                    print(f"{one.release}: {len(one.findings)} findings, {one.wall:.0f} s", file=sys.stderr)
                places = {(found.path, found.line, found.code): found for found in reversed(one.findings)}
                yield replace(one, findings=tuple(sorted(places.values())))
        finally:
            for one_ahead in ahead:
                one_ahead.cancel()


def _check(
    name: str, packages: Path, known: Checked | None, how: Draw, extra: Sequence[str], taken: Mapping[str, str]
) -> Checked:
    """Download and check one package, by one process. Raises DownloadError and CheckError."""
    if known is not None:
        return known
    if how.unpacked is not None:
        folder = next(one for one in how.unpacked.iterdir() if _release(one).package == name)
        release = _release(folder)
    else:
        release = Release(name, newest(name, packages))
        folder = packages / str(release)
    forked = [top.name for top in sorted(folder.iterdir()) if project(top.name) in taken.keys() - {project(name)}]
    if forked:
        raise CheckError(f"{release} holds the modules of what was used before: {', '.join(forked)}")
    return check(release, folder, 1, extra, how.seconds, how.only)


def _release(folder: Path) -> Release:
    """What lies unpacked: ``OWNER__NAME-COMMIT`` is a commit of a repository."""
    name, _, version = folder.name.rpartition("-")
    return Release(name.replace("__", "/"), version)
