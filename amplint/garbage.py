"""When a process that checks many files looks for cyclic garbage, of which syntax trees make much."""

from __future__ import annotations

import atexit
import gc

COLLECT_AT = 1_000_000
"""Objects made since the last collection after which Python looks for cyclic garbage by itself."""


def collect_seldom() -> None:
    """Look for cyclic garbage less often, and not at the end: going through large syntax trees costs a third of a long
    run, and a sixth of a short one where that ends."""
    gc.set_threshold(COLLECT_AT, 20, 10)
    atexit.register(gc.freeze)


COLLECT_EVERY = 4_000_000
"""Bytes of source after which a process collects garbage: left to itself, it would let a gigabyte pile up."""
COLLECT_ALL_EVERY = 4
"""Collections after which what outlived earlier ones, mostly syntax trees in use, is looked through again."""


class _Checked:
    """The source that was checked since the last collection, and how many there were."""

    def __init__(self) -> None:
        self.size = 0
        self.collections = 0


_checked = _Checked()


def collect_after_file(size: int) -> None:
    """Collect garbage when enough source was checked since the last time, where :func:`collect_seldom` holds; ``size``
    is that of one file, in bytes."""
    if gc.get_threshold()[0] != COLLECT_AT:
        return
    _checked.size += size
    if _checked.size < COLLECT_EVERY:
        return
    _checked.size = 0
    _checked.collections += 1
    if _checked.collections % COLLECT_ALL_EVERY == 0:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
