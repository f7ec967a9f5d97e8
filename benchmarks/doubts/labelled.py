"""Findings of which somebody or a run said whether they are right, with the doubts that hold about them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import listed
from halves import LEARNED, half, project
from judged.rounds import Rounds
from judged.rows import findings
from mutants.claims import Task, finds, said
from mutants.draw import draw
from mutants.outcomes import HARMLESS, HURTS
from mutants.rows import LABELS, files_of, load
from wheels import DownloadError, unpacked, wheel_in

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import ALL, load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.rounds import Drawn
    from judged.rows import Place
    from mutants.claims import Claim
    from mutants.rows import Row

    from amplint.finding import Finding

JUDGED = Path(__file__).resolve().parent.parent / "judged" / "findings.jsonl"
RIGHT, WRONG, ARGUABLE, UNKNOWN = "right", "wrong", "arguable", "not judged"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A finding in a package, the doubts that hold about it, and the verdict on it, ``UNKNOWN`` where nobody judged."""

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


OPTIONS = replace(judging_options(Config(), load_rules(), select=(ALL,)), dropped=True, each_place=True)
"""Every rule is on, and what doubts hide or drop is shown."""


def of_readers(shelf: Shelf) -> Iterator[Labelled]:
    """The findings that readers judged and amplint still makes, doubted or not.

    Those are the judged findings of the learned half, with their latest verdict, and all of the fresh rounds.
    """
    by_file: dict[tuple[str, str, str], dict[tuple[int, str], str]] = defaultdict(dict)
    for (place, code), verdict in _verdicts_of_readers().items():
        by_file[place.package, place.release, place.path][place.line, code] = verdict
    for (package, release, path), verdicts in sorted(by_file.items()):
        folder = shelf.get(f"{package}=={release}")
        file = folder / path if folder is not None else None
        if file is None or not file.is_file():
            continue
        made = {(f.span.start.row, f.code): f for f in check_file(Source(file, file.read_bytes()), OPTIONS).findings}
        for key, verdict in verdicts.items():
            if key in made:
                yield Labelled(package, key[1], names(made[key]), verdict)


def _verdicts_of_readers() -> dict[tuple[Place, str], str]:
    learned = {project(release.package) for release in listed()}
    found: dict[tuple[Place, str], str] = {}
    for one in sorted(findings(JUDGED), key=lambda one: one.drawn):
        if project(one.place.package) in learned or half(one.place.package) == LEARNED:
            found[one.place, one.code] = one.verdict
    rounds = Rounds()
    for drawn in (drawn for name in rounds.names() for drawn in rounds.load(name)):
        found[drawn.key] = _agreed(drawn)
    return found


def _agreed(drawn: Drawn) -> str:
    """What all readers of a finding say, arguable where they differ."""
    said = {one.verdict for one in drawn.verdicts.values()}
    return said.pop() if len(said) == 1 else ARGUABLE


def names(finding: Finding) -> tuple[str, ...]:
    """The doubts that hold about a finding."""
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
