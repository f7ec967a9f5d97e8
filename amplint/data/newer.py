"""What newer releases of torch do otherwise than the one that the tables were measured on: ``newer.json``, read.

A table maps names to entries. Here are, by table, name and release, the keys of an entry that changed in it (null where
one is gone), or null where the whole entry is.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from amplint.data import read_table

Release = tuple[int, int]
Entry = dict[str, Any]


@cache
def _changes(table: str) -> dict[str, list[tuple[Release, Entry | None]]]:
    """By name, the changes of a table's entry, the oldest release first."""
    named: dict[str, dict[str, Entry | None]] = read_table("newer.json")["tables"][table]
    return {
        name: sorted((_release(text), change) for text, change in changes.items()) for name, changes in named.items()
    }


def _release(text: str) -> Release:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@cache
def measured() -> Release:
    """The release that the tables were measured on."""
    return _release(read_table("newer.json")["base"])


def changed_names(table: str) -> list[str]:
    """The names whose entries changed or are new."""
    return list(_changes(table))


def entry_in(release: Release, table: str, name: str, entry: Entry | None) -> Entry | None:
    """An entry of a table as it is in a release; None where that has none."""
    for since, change in _changes(table).get(name, ()):
        if since <= release:
            entry = None if change is None else merged(entry or {}, change)
    return entry


def refusal_key(row: Entry) -> str:
    """The name of a refusal of ``low_precision_support.json``: its dtype, operation and text."""
    return json.dumps([row["dtype"], row["op"], row["text"]])


def merged(entry: Entry, change: Entry) -> Entry:
    """An entry after a change."""
    return {key: value for key, value in {**entry, **change}.items() if value is not None}
