"""Rows of one verdict, the same ones of several models together, so that a developer can work down the list."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amplint.source import Source
from dtype_truth.roots import Roots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dtype_truth.compare import Compared, Inference
    from dtype_truth.truth import Case, Position

TEXT = 70


@dataclass(frozen=True, slots=True)
class _Place:
    """One line of the list. ``kind`` is a root's, and empty in the list of rows."""

    path: Path
    position: Position
    kind: str = ""


@dataclass(slots=True)
class Listing:
    """Prints expressions of files below ``root``, with their text."""

    root: str
    limit: int
    _sources: dict[Path, Source] = field(default_factory=dict)

    def rows(self, chosen: Iterable[Compared]) -> list[str]:
        """Each expression with what was inferred, those that most runs have first."""
        groups: dict[_Place, list[Compared]] = defaultdict(list)
        for one in chosen:
            groups[_Place(one.path, one.truth.position)].append(one)
        return self._lines(groups, "expressions")

    def roots(self, chosen: Iterable[Compared], compared: Iterable[Compared], inference: Inference) -> list[str]:
        """Each expression where the inference first goes astray, those with most rows behind them first."""
        verdicts: dict[tuple[Case, Path], dict[Position, str]] = defaultdict(dict)
        for one in compared:
            verdicts[one.case, one.path][one.truth.position] = one.verdict
        finders: dict[tuple[Case, Path, str], Roots] = {}
        groups: dict[_Place, list[Compared]] = defaultdict(list)
        for one in chosen:
            key = (one.case, one.path, one.verdict)
            if key not in finders:
                inferred = inference.of(one.path, one.case)
                finders[key] = Roots(self._source(one.path), inferred, verdicts[one.case, one.path], one.verdict)
            root = finders[key].of(one.truth.position)
            groups[_Place(one.path, root.position, root.kind)].append(one)
        return self._lines(groups, "roots")

    def _lines(self, groups: dict[_Place, list[Compared]], what: str) -> list[str]:
        ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0].path), item[0].position))
        text = [f"below {self.root}:"]
        for place, found in ordered[: self.limit]:
            kind = f"[{place.kind}] " if place.kind else ""
            text.append(f"{len(found):4}  {self._where(place)}  {kind}{self._snippet(place.path, place.position)}")
            text.extend(self._details(place, found))
        text.append(f"{sum(map(len, groups.values()))} rows, {len(groups)} {what}")
        return text

    def _where(self, place: _Place) -> str:
        path = str(place.path).removeprefix(self.root).lstrip("/")
        return f"{path}:{place.position[0]}:{place.position[1]}"

    def _details(self, place: _Place, found: Sequence[Compared]) -> Iterator[str]:
        """What is true and what was inferred; for a root also some of the expressions that follow from it."""
        said: dict[str, list[str]] = defaultdict(list)
        for one in found:
            if one.truth.position == place.position:
                said[_said(one)].append(f"{one.case.scenario}/{one.case.device}")
        for what, ways in said.items():
            yield f"      {what}  ({', '.join(dict.fromkeys(ways))})"
        behind = list(dict.fromkeys(one.truth.position for one in found if one.truth.position != place.position))
        if behind:
            first = "; ".join(f"{position[0]}: {self._snippet(place.path, position)}" for position in behind[:2])
            yield f"      behind it {len(behind)}: {first}"

    def _snippet(self, path: Path, position: Position) -> str:
        """The expression's text on one line, cut to 70 characters."""
        row, column, end_row, end_column = position
        lines = [self._source(path).line(number) for number in range(row, end_row + 1)]
        lines[-1] = lines[-1][: end_column - 1]
        lines[0] = lines[0][column - 1 :]
        text = " ".join(" ".join(lines).split())
        return text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"

    def _source(self, path: Path) -> Source:
        if path not in self._sources:
            self._sources[path] = Source(path, path.read_bytes())
        return self._sources[path]


def _said(one: Compared) -> str:
    if one.inferred is None:
        return f"{one.truth.dtype}, no row"
    if not one.inferred.dtypes:
        return f"{one.truth.dtype}, unknown"
    origin = f" from {one.inferred.origin}" if one.inferred.origin else ""
    return f"{one.truth.dtype}, inferred {' | '.join(one.inferred.dtypes)}{origin}"
