"""What the public modules of torch hold in each release, by ``names.json``: what code cannot ask of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from amplint.data import read_table
from amplint.data.newer import Release

if TYPE_CHECKING:
    from collections.abc import Iterable

Span = tuple[Release, Release]
"""The first and the last release, of those that were read, that have a name."""


def missing(name: str, release: Release) -> str | None:
    """The part of a dotted name, ``torch`` being its first, that a release has not, None where it has all of it or
    that is not known.

    A name that no release has, and of which something is asked, may be a device that an extension brings. Private names
    are known only where they are modules.
    """
    releases = _releases()
    if not releases[0] <= release <= releases[-1]:
        return None
    module, *parts = name.split(".")
    for part in parts:
        held = _held(module)
        if held is None:
            return None
        if part not in held:
            return part if part == parts[-1] and not part.startswith("_") else None
        first, last = held[part]
        behind = next((other for other in releases if other > last), None)
        before = next((other for other in reversed(releases) if other < first), None)
        if (behind is not None and release >= behind) or (before is not None and release <= before):
            return part
        module = f"{module}.{part}"
    return None


def has(name: str, release: Release) -> bool | None:
    """Whether a release has a dotted name, ``torch`` being its first part; None where that is not known, as of names
    that no release has, and that an extension may bring."""
    module, _, part = name.rpartition(".")
    span = (_held(module) or {}).get(part)
    if span is None:
        return None
    if span[0] <= release <= span[1]:
        return True
    return False if missing(name, release) is not None else None


def only_raises(name: str, release: Release) -> bool:
    """Whether a function of torch does nothing but raise, from the release that was read on."""
    return release >= _release(_removed()["torch"]) and name in _removed()["raising"]


def refuses(name: str, keywords: Iterable[str], release: Release) -> bool:
    """Whether an optimizer or a scheduler of torch does not take a keyword, from the release that was read on."""
    taken = _removed()["parameters"].get(name) if release >= _release(_removed()["torch"]) else None
    return taken is not None and not set(keywords).issubset(taken)


@cache
def _removed() -> dict[str, Any]:
    read: dict[str, Any] = read_table("removed.json")
    return read


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = read_table("names.json")
    return read


@cache
def _releases() -> tuple[Release, ...]:
    return tuple(map(_release, _read()["releases"]))


def _release(text: str) -> Release:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@cache
def _held(module: str) -> dict[str, Span] | None:
    """The public names of a module, None of one that was not read."""
    spans: dict[str, str] | None = _read()["modules"].get(module)
    if spans is None:
        return None
    releases, found = _releases(), {}
    for span, names in spans.items():
        first, _, last = span.partition("-")
        ends = _release(first) if first else releases[0], _release(last) if last else releases[-1]
        found.update(dict.fromkeys(names.split(), ends))
    return found
