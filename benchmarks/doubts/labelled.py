"""Findings of which somebody or a run said whether they are right, with the doubts that hold about them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import listed
from halves import LEARNED, half, project
from judged.rows import findings
from mutants.claims import Task, finds, said
from mutants.draw import draw
from mutants.outcomes import HARMLESS, HURTS
from mutants.rows import LABELS, files_of, load
from wheels import DownloadError, unpacked, wheel_in

from amplint.cli.judging import judging_options
from amplint.config import Config
from amplint.engine import check_file
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.rows import Judged
    from mutants.claims import Claim
    from mutants.rows import Row

    from amplint.finding import Finding

JUDGED = Path(__file__).resolve().parent.parent / "judged" / "findings.jsonl"
RIGHT, WRONG, ARGUABLE = "right", "wrong", "arguable"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A finding in a package, the doubts that hold about it, and the verdict on it."""

    package: str
    code: str
    doubts: tuple[str, ...]
    verdict: str


class Shelf:
    """Releases unpacked below ``folder``, from the wheels in a folder, or downloaded where none is given.

    ``lacking`` are those that were not had.
    """

    def __init__(self, folder: Path, wheels: Path | None) -> None:
        self.lacking: list[str] = []
        self._folder, self._wheels = folder, wheels
        self._had: dict[str, Path | None] = {}

    def get(self, requirement: str) -> Path | None:
        """The folder of a release; None where it is not had."""
        if requirement not in self._had:
            self._had[requirement] = self._unpacked(requirement)
            if self._had[requirement] is None:
                self.lacking.append(requirement)
        return self._had[requirement]

    def _unpacked(self, requirement: str) -> Path | None:
        if self._wheels is not None and wheel_in(requirement, self._wheels) is None:
            return None
        try:
            return unpacked(requirement, self._folder, self._wheels)
        except DownloadError:
            return None


def of_readers(shelf: Shelf) -> Iterator[Labelled]:
    """The judged findings of the learned half that amplint still makes, doubted or not, with their latest verdict."""
    latest = {(one.place, one.code): one for one in sorted(findings(JUDGED), key=lambda one: one.drawn)}
    learned = {project(release.package) for release in listed()}
    by_file: dict[tuple[str, str, str], list[Judged]] = defaultdict(list)
    for one in latest.values():
        place = one.place
        if project(place.package) in learned or half(place.package) == LEARNED:
            by_file[place.package, place.release, place.path].append(one)
    options = replace(judging_options(Config(), load_rules()), dropped=True, each_place=True)
    for (package, release, path), rows in sorted(by_file.items()):
        folder = shelf.get(f"{package}=={release}")
        file = folder / path if folder is not None else None
        if file is None or not file.is_file():
            continue
        made = {(f.span.start.row, f.code): f for f in check_file(Source(file, file.read_bytes()), options).findings}
        for row in rows:
            finding = made.get((row.place.line, row.code))
            if finding is not None:
                yield Labelled(package, row.code, _names(finding), row.verdict)


def _names(finding: Finding) -> tuple[str, ...]:
    return tuple(held.doubt.name for held in finding.doubts)


def of_mutants(shelf: Shelf, most: int, jobs: int) -> Iterator[Labelled]:
    """What is said of mutants of the learned half beyond what is said of the originals.

    Right where it finds what hurts, wrong where the mutant runs clean in every scenario that it names. Up to ``most``
    mutants of each operator are drawn.
    """
    rows = [row for file in files_of(LEARNED, LABELS) for row in load(file)[0]]
    by_file: dict[Path, list[Row]] = defaultdict(list)
    for row in draw(rows, most):
        folder = shelf.get(f"{row.library}=={row.release}")
        if folder is not None:
            by_file[folder / row.file].append(row)
    tasks = [Task(path, tuple(found), doubted=True) for path, found in by_file.items() if path.is_file()]
    for task, told in said(tasks, jobs):
        for row, new in zip(task.rows, told.new, strict=True):
            yield from _verdicts(row, new)


def _verdicts(row: Row, new: Sequence[Claim]) -> Iterable[Labelled]:
    for claim in new:
        labels = {scenario: row.labels[scenario]["label"] for scenario in claim.scenarios if scenario in row.labels}
        if any(label in HURTS and finds(claim, row, scenario) for scenario, label in labels.items()):
            yield Labelled(row.library, claim.code, claim.doubts, RIGHT)
        elif labels and all(label == HARMLESS for label in labels.values()):
            yield Labelled(row.library, claim.code, claim.doubts, WRONG)
