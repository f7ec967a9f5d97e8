"""Where ``amplint check`` says that something fails: a finding's own place, and the others that fail for its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def at_each_place(finding: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A finding as the JSON output has it, once for each of its places, as if it lay there."""
    yield finding
    yield from ({**finding, **place} for place in finding["also"])
