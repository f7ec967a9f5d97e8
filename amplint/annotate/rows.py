"""A file's expressions with their dtype in every scenario, in source order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.assumptions import AS_USED
from amplint.infer.lattice.dtypes import Lane, names_of
from amplint.infer.state.observe import Observer

if TYPE_CHECKING:
    from amplint.annotate.failing import Failing
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.lattice.values import Origin
    from amplint.source import Source, Span


@dataclass(frozen=True, slots=True)
class Row:
    """One expression that may be a tensor.

    ``dtypes`` has an entry for each scenario: the torch names (without prefix) that are possible, None where unknown.
    ``origin`` is where the dtype was decided. ``maybe``: an argument of a function that nothing calls, which is that if
    it is a tensor at all.
    """

    span: Span
    dtypes: tuple[tuple[str, ...] | None, ...]
    origin: Origin | None
    maybe: bool = False


@dataclass(frozen=True, slots=True)
class FileDtypes:
    """All rows of one file, by start, then end, and where it fails, if that was asked for."""

    source: Source
    scenarios: tuple[Scenario, ...]
    device: str
    rows: tuple[Row, ...]
    failing: tuple[Failing, ...] = ()

    def known(self, lane: int) -> tuple[int, int]:
        """Of how many expressions the dtype is known in one scenario, and how many there are."""
        sure = [row.dtypes[lane] for row in self.rows if not row.maybe]
        return sum(dtype is not None for dtype in sure), len(sure)


def file_dtypes(
    source: Source, *, scenarios: tuple[Scenario, ...], device: str, torch_version: tuple[int, int]
) -> FileDtypes:
    """Infer the dtypes of one file's expressions. Raises SourceError where it does not parse."""
    observer = Observer()
    facts = analyse(
        source,
        scenarios=scenarios,
        device=device,
        torch_version=torch_version,
        recorder=observer,
        assumptions=AS_USED,
    )
    rows = []
    for node, tensor, live in observer.tensors(facts.source.tree):
        dtypes = tuple(
            _names(tensor.dtypes[lane]) if tensor is not None and live >> lane & 1 else None
            for lane in range(len(scenarios))
        )
        if tensor is None:
            rows.append(Row(source.span(node), dtypes, None))
        else:
            rows.append(Row(source.span(node), dtypes, tensor.origin, tensor.maybe))
    return FileDtypes(source, scenarios, device, tuple(sorted(rows, key=lambda row: (row.span.start, row.span.end))))


def _names(lane: Lane) -> tuple[str, ...] | None:
    return tuple(names_of(lane.mask)) if lane.known else None
