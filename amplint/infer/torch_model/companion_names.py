"""What torchvision and torchaudio once held and do not hold beside a release of torch, by ``companions.json``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from amplint.data import read_table

if TYPE_CHECKING:
    from amplint.data.newer import Release


def gone(name: str, release: Release) -> str | None:
    """The part of a dotted name, ``torchvision`` or ``torchaudio`` being its first, that the companion of a release of
    torch does not hold any more, None where it has all of it or that is not known."""
    module, *parts = name.split(".")
    for part in parts:
        first = _gone().get(module, {}).get(part)
        if first is not None and release >= first:
            return part
        module = f"{module}.{part}"
    return None


@cache
def _gone() -> dict[str, dict[str, Release]]:
    """By module, the names that are gone, each with the first torch whose companion lacks it."""
    table: dict[str, Any] = read_table("companions.json")
    found: dict[str, dict[str, Release]] = {}
    for release, modules in table["gone"].items():
        major, minor = release.split(".")
        for module, names in modules.items():
            found.setdefault(module, {}).update(dict.fromkeys(names.split(), (int(major), int(minor))))
    return found
