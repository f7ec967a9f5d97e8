"""What the frames of a traceback tell beyond its text: where autocast cannot have been on, and why."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from amplint.config import parse_toml
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.explain.frames import Frame


@dataclass(frozen=True, slots=True)
class Clue:
    """One row of ``clues.toml``, which explains the fields."""

    says: str
    codes: tuple[str, ...]
    path: str = ""
    function: str = ""
    text: str = ""
    innermost: bool = False
    family: str = ""

    def fits(self, frames: Sequence[Frame]) -> bool:
        if self.innermost:
            frames = [frame for frame in frames if not frame.of_torch][-1:]
        return any(
            re.search(self.path, "/".join(frame.parts))
            and re.search(self.function, frame.function or "")
            and re.search(self.text, frame.text)
            for frame in frames
        )


@cache
def _known() -> tuple[Clue, ...]:
    text = resources.files("amplint.explain").joinpath("clues.toml").read_text(encoding="utf-8")
    return tuple(Clue(**{**row, "codes": tuple(row.get("codes", ()))}) for row in parse_toml(text)["clue"])


def clues(frames: Sequence[Frame], family: str) -> list[Clue]:
    """The clues that the frames of one traceback give on a text; where some point to a rule, those alone."""
    found = [clue for clue in _known() if clue.family in ("", family) and clue.fits(frames)]
    return [clue for clue in found if clue.codes] or found
