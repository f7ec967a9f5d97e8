"""The dtype behind each variable that a tensor is assigned to, in one scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from amplint.annotate.changes import Changes
from amplint.annotate.notes import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.annotate.rows import FileDtypes
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.server.positions import Positions
    from amplint.source import Span


def hints(file: FileDtypes, scenario: Scenario, within: Span, positions: Positions) -> Iterator[types.InlayHint]:
    """The hints in a part of a file, where the dtype is known; ``file`` has the scenario among its own."""
    lane = file.scenarios.index(scenario)
    for span, row in sorted(Changes(file).assigned(), key=lambda one: one[0]):
        dtypes = row.dtypes[lane]
        if dtypes and within.start <= span.end <= within.end:
            yield types.InlayHint(
                positions.position(span.end),
                f": {shown(dtypes)}",
                types.InlayHintKind.Type,
                tooltip=f"{scenario.name}, device {file.device}",
            )
