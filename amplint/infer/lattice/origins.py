"""Where dtypes were decided: looked up along what passed them on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.infer.lattice.dtypes import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.lattice.values import Origin, Tensor

MAX_CAUSES = 6


def deciding(origin: Origin | None, lane: int, *, through_modules: bool = True) -> Origin | None:
    """The place that decided a dtype in one scenario: behind everything that only passed it on.

    ``through_modules``: behind a parameter or buffer too, to the constructor that made it.
    """
    last = None
    for last in lineage(origin, lane):
        if last.placed and not through_modules:
            break
    return last


def lineage(origin: Origin | None, lane: int) -> Iterator[Origin]:
    """The places that a dtype came through in one scenario, back to the one that decided it."""
    while origin is not None:
        yield origin
        wanted = origin.dtypes[lane]
        passed = (p for p in origin.parents if p.dtypes[lane] == wanted or (wanted.bounded and p.dtypes[lane].wide))
        parent = next(passed, None)
        if parent is None:
            joined = [p for p in origin.parents if p.dtypes[lane].mask & wanted.mask]
            if origin.what or not joined:
                return
            parent = joined[0]
        origin = parent


def causes(path: Path, tensors: Iterable[Tensor], lane: int) -> tuple[Cause, ...]:
    """Where the tensors' dtypes were decided in one scenario: first in the file at ``path``, in source order."""
    found: list[Cause] = []
    for tensor in tensors:
        origin = deciding(tensor.origin, lane)
        if origin is None or not origin.what:
            continue
        dtype = " or ".join(names_of(origin.dtypes[lane].named)) or "unknown dtype"
        by_autocast = ", by autocast" if origin.autocast >> lane & 1 else ""
        cause = Cause(Path(origin.filename), origin.span, f"{dtype}: {origin.what}{by_autocast}")
        if cause not in found:
            found.append(cause)
    return tuple(sorted(found, key=lambda c: (c.filename != path, str(c.filename), c.span)))[:MAX_CAUSES]
