"""The rounds of fresh draws: findings in packages that nobody had used before, each with the verdicts of its readers.

``fresh/NAME.jsonl`` is a round, a row a finding; ``drawn.txt`` names the releases that rounds were drawn from.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.rows import VERDICTS, Place, RowsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ecosystem.releases import Release
    from ecosystem.result import Found

HERE = Path(__file__).resolve().parent
_PLACE = ("package", "release", "path", "line")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reader says."""

    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A finding of a round, as the ``amplint`` of its draw reported it, and the verdicts by reader. ``gone``: the first
    that was seen to tell it no longer."""

    place: Place
    code: str
    severity: str
    certainty: str
    scenarios: tuple[str, ...]
    amplint: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    gone: str = ""

    @property
    def key(self) -> tuple[Place, str]:
        return self.place, self.code

    @classmethod
    def of(cls, release: Release, found: Found, amplint: str) -> Drawn:
        place = Place(release.package, release.version, found.path, found.line)
        return cls(place, found.code, found.severity, found.certainty, found.scenarios, amplint)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Drawn:
        verdicts = {reader: Verdict(**said) for reader, said in row["verdicts"].items()}
        rest = {key: row[key] for key in ("code", "severity", "certainty", "amplint")}
        return cls(_place(row), scenarios=tuple(row["scenarios"]), verdicts=verdicts, gone=row.get("gone", ""), **rest)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        place: dict[str, Any] = data.pop("place")
        gone = data.pop("gone")
        return place | data | ({"gone": gone} if gone else {})


class Rounds:
    """The rounds below a folder: its ``fresh/`` and its ``drawn.txt``, and the ``pool.txt`` that they draw from."""

    def __init__(self, folder: Path = HERE) -> None:
        self.pool, self.drawn, self.folder = folder / "pool.txt", folder / "drawn.txt", folder / "fresh"

    def names(self) -> list[str]:
        """The rounds, the oldest first, as ``drawn.txt`` has them."""
        drawn = self.drawn.read_text(encoding="utf-8").split("\n") if self.drawn.exists() else []
        order = {name: at for at, name in enumerate(dict.fromkeys(line.partition(" ")[0] for line in drawn))}
        return sorted((path.stem for path in self.folder.glob("*.jsonl")), key=lambda name: (order.get(name, -1), name))

    def load(self, name: str) -> list[Drawn]:
        """The findings of a round. Raises RowsError."""
        path = self.folder / f"{name}.jsonl"
        try:
            return [Drawn.from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RowsError(f"{path} is no round: {error!r}") from error

    def save(self, name: str, drawn: Iterable[Drawn]) -> None:
        """Write a round."""
        self.folder.mkdir(exist_ok=True)
        text = "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in drawn)
        (self.folder / f"{name}.jsonl").write_text(text, encoding="utf-8")

    def note(self, name: str, drawn: Iterable[Drawn]) -> None:
        """Add the releases of a round to the list of those that were drawn from."""
        releases = sorted({(one.place.package, one.place.release) for one in drawn})
        with self.drawn.open("a", encoding="utf-8") as file:
            file.writelines(f"{name} {package}=={version}\n" for package, version in releases)


def judged_by(reader: str, rows: Sequence[Drawn], said: Mapping[tuple[Place, str], Verdict]) -> list[Drawn]:
    """A round with what a reader says added. Raises RowsError where that is of no finding, or was said otherwise."""
    unknown = sorted(_shown(place) for place, _ in said.keys() - {one.key for one in rows})
    if unknown:
        raise RowsError(f"not drawn in this round: {', '.join(unknown)}")
    for one in rows:
        if reader in one.verdicts and one.verdicts[reader] != said.get(one.key, one.verdicts[reader]):
            raise RowsError(f"{reader} has judged {_shown(one.place)} otherwise before")
    return [replace(one, verdicts={**one.verdicts, reader: said[one.key]}) if one.key in said else one for one in rows]


def read_verdicts(path: Path) -> dict[tuple[Place, str], Verdict]:
    """A reader's file: the rows that a draw wrote for readers, with verdict and reason filled in. Raises RowsError."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        said = {(_place(row), row["code"]): Verdict(row["verdict"], row["reason"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RowsError(f"{path} has a row that is no judgement: {error!r}") from error
    for (place, _), one in said.items():
        if one.verdict not in VERDICTS or not one.reason:
            raise RowsError(f"{path}: {_shown(place)} needs a verdict of {', '.join(VERDICTS)} and a reason")
    return said


def _place(row: dict[str, Any]) -> Place:
    return Place(*(row[name] for name in _PLACE))


def _shown(place: Place) -> str:
    return f"{place.package} {place.path}:{place.line}"
