"""Which functions of a file end early, found once for each file of a run."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.claims.conflicts import early_ends
from amplint.infer.entry.analysis import analyse
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts

Ends = dict[int, dict[str, int]]
"""Functions, by the line of their definition, with the scenarios in which they end early, each with the line."""


class Judging(NamedTuple):
    """What files are judged for, as :func:`amplint.infer.entry.analysis.analyse` wants it."""

    scenarios: tuple[Scenario, ...]
    device: str
    torch_version: tuple[int, int]
    oldest_torch: tuple[int, int] | None

    def facts(self, source: Source) -> FileFacts:
        """What the inference says of a file. Raises SourceError where it does not parse."""
        return analyse(source, **self._asdict())

    def ends(self, path: Path) -> Ends:
        """The functions of a file that end early; none of one that cannot be read."""
        return _ends(path, self, contents.age())


@lru_cache(maxsize=512)
def _ends(path: Path, judging: Judging, age: int) -> Ends:
    try:
        return early_ends(judging.facts(Source(path, contents.read(path))))
    except (OSError, SourceError, RecursionError):
        return {}
