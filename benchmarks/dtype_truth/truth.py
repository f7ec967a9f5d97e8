"""What was recorded: plain data that goes to disk and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Position = tuple[int, int, int, int]
"""Row, column, end row, end column; from 1, columns in characters, the end exclusive."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model in one way of running."""

    library: str
    model: str
    scenario: str
    device: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The value of one expression of one file, the same dtype wherever it was evaluated.

    ``file`` is relative to the library's package. ``torch``: the value comes from a call of torch, not of the library's
    own code. ``count``: how often it was evaluated.
    """

    file: str
    position: Position
    dtype: str
    torch: bool
    count: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What one run gave. ``error`` is None where it ran; ``mixed`` counts expressions that had several dtypes.

    ``root`` is the library's package folder, ``modeling`` the file that defines the model, relative to it, and ``how``
    says what was built.
    """

    case: Case
    root: str = ""
    modeling: str = ""
    how: str = ""
    mixed: int = 0
    error: str | None = None
    rows: tuple[Recorded, ...] = ()

    def to_json(self) -> dict[str, Any]:
        rows = [[row.file, *row.position, row.dtype, row.torch, row.count] for row in self.rows]
        return {**asdict(self.case), "root": self.root, "modeling": self.modeling, "how": self.how,
                "mixed": self.mixed, "error": self.error, "rows": rows}  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Recording:
        rows = tuple(Recorded(row[0], (row[1], row[2], row[3], row[4]), *row[5:]) for row in data["rows"])
        case = Case(data["library"], data["model"], data["scenario"], data["device"])
        return cls(case, data["root"], data["modeling"], data["how"], data["mixed"], data["error"], rows)


def load(path: Path) -> dict[Case, Recording]:
    """The recordings of a file; none where there is no file yet."""
    if not path.exists():
        return {}
    return {made.case: made for made in map(Recording.from_json, json.loads(path.read_text())["recordings"])}


def save(path: Path, recordings: dict[Case, Recording]) -> None:
    """Write the recordings, one a line."""
    lines = ",\n".join(json.dumps(made.to_json(), separators=(",", ":")) for made in recordings.values())
    path.write_text(f'{{"recordings": [\n{lines}\n]}}\n')
