"""Distributions that are installed, or lie unpacked, by the metadata beside their packages."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=4096)
def distribution_of(folder: str, age: int) -> Path | None:
    """The metadata of the installed or unpacked distribution that a folder belongs to."""
    parent, own = os.path.split(folder)
    if parent == folder or os.path.exists(os.path.join(folder, ".git")):
        return None
    return distributions_in(parent, age).get(own) or distribution_of(parent, age)


@lru_cache(maxsize=4096)
def distributions_in(folder: str, age: int) -> dict[str, Path]:
    """The packages that are installed or unpacked in a folder, each with the metadata of its distribution."""
    found: dict[str, Path] = {}
    for record in sorted(Path(folder).glob("*.dist-info/RECORD")):
        try:
            lines = record.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
        tops = {top for top, below, _ in (line.partition("/") for line in lines) if below}
        found |= dict.fromkeys(tops, record.with_name("METADATA"))
    return found
