"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(text: str, candidates: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing where no candidate resembles the text."""
    from difflib import get_close_matches

    spelling = {candidate.casefold(): candidate for candidate in candidates}
    matches = get_close_matches(text.casefold(), list(spelling), n=1, cutoff=0.5)
    return f" (did you mean '{spelling[matches[0]]}'?)" if matches else ""
