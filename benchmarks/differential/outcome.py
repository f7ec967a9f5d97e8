"""What running a model gave: plain data that goes to disk and back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Crash:
    """A run that raised where the same one in float32 did not.

    ``frames`` are the library's lines on the way to it, outermost first, as file relative to the package and row; none
    for a failure in a backward pass, which Python does not reach. ``gap``: CPU kernels lack what the GPU has, so it
    says nothing about the GPU.
    """

    scenario: str
    mode: str
    error: str
    frames: tuple[tuple[str, int], ...]
    gap: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """One model in all scenarios.

    ``clean`` are the rows of each file that ran in a scenario, by scenario and file, in modes that ended well.
    """

    library: str
    model: str
    root: str = ""
    error: str | None = None
    crashes: tuple[Crash, ...] = ()
    clean: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    modes: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Outcome:
        crashes = tuple(
            Crash(**{**one, "frames": tuple((file, row) for file, row in one["frames"])}) for one in data["crashes"]
        )
        return Outcome(**{**data, "crashes": crashes})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def load(path: Path) -> dict[tuple[str, str], Outcome]:
    """The outcomes kept in a file, by library and model."""
    if not path.exists():
        return {}
    made = [Outcome.from_json(one) for one in json.loads(path.read_text())]
    return {(one.library, one.model): one for one in made}


def save(path: Path, outcomes: dict[tuple[str, str], Outcome]) -> None:
    """Keep outcomes in a file."""
    path.write_text(json.dumps([one.to_json() for one in outcomes.values()]))
