"""When a process that checks many files looks for cyclic garbage, of which syntax trees make much."""

from __future__ import annotations

import atexit
import gc
import itertools

COLLECT_AT = 1_000_000
"""Objects made since the last collection after which Python looks for cyclic garbage by itself."""


def collect_seldom() -> None:
    """Look for cyclic garbage less often, and not at the end: going through large syntax trees costs a third of a long
    run, and a sixth of a short one where that ends."""
    gc.set_threshold(COLLECT_AT, 20, 10)
    atexit.register(gc.freeze)


COLLECT_EVERY = 400
"""Files after which a process collects garbage: left to itself, it would let a gigabyte pile up."""
COLLECT_ALL_EVERY = 4
"""Collections after which what outlived earlier ones, mostly syntax trees in use, is looked through again."""

_checked = itertools.count(1)


def collect_after_file() -> None:
    """Collect garbage when enough files have been checked since the last time, where :func:`collect_seldom` holds."""
    if gc.get_threshold()[0] != COLLECT_AT:
        return
    collections, rest = divmod(next(_checked), COLLECT_EVERY)
    if rest:
        return
    if collections % COLLECT_ALL_EVERY == 0:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
