"""The JSON of the contract: every expression that may be a tensor, with its dtype in one scenario."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from amplint.annotate.origins import decider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.annotate.rows import FileDtypes, Row
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.source import Location


def render(files: Iterable[FileDtypes], scenario: Scenario, device: str) -> Iterator[str]:
    """The document in pieces, a line for each expression. Every file has ``scenario`` among its scenarios."""
    yield f'{{"scenario": {json.dumps(scenario.name)}, "device": {json.dumps(device)}, "files": ['
    separator = "\n"
    for file in files:
        lane = file.scenarios.index(scenario)
        expressions = ",\n".join(json.dumps(as_json(row, lane, str(file.source.path))) for row in file.rows)
        yield f'{separator}{{"filename": {json.dumps(str(file.source.path))}, "expressions": [\n{expressions}]}}'
        separator = ",\n"
    yield "]}\n"


def as_json(row: Row, lane: int, filename: str) -> dict[str, Any]:
    """One expression with the keys in the order of the contract; ``filename`` is the file that it is in."""
    return {
        "location": _location(row.span.start),
        "end_location": _location(row.span.end),
        "dtype": _dtype(row.dtypes[lane]),
        "origin": _origin(row, lane, filename),
    }


def _dtype(names: tuple[str, ...] | None) -> str | list[str] | None:
    if names is None:
        return None
    return names[0] if len(names) == 1 else sorted(names)


def _origin(row: Row, lane: int, filename: str) -> dict[str, Any] | None:
    origin = decider(row, lane)
    if origin is None:
        return None
    place: dict[str, Any] = _location(origin.span.start)
    return place if origin.filename == filename else {"filename": origin.filename, **place}


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}
