"""What torch's mixed-precision API takes, by ``signatures.json``: what a call is refused for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from amplint.data import read_table
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.data.newer import Release


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a callable: those that take an argument by position, all of them, those that have no default,
    and whether it takes any other."""

    positional: tuple[str, ...]
    parameters: frozenset[str]
    required: tuple[str, ...]
    takes_more: bool

    def refusal(self, positional: int, keywords: Iterable[str], unseen: bool) -> str | None:
        """Why a call with so many arguments by position and these keywords raises a TypeError, None where it does not.

        ``unseen``: it has arguments that the source does not show.
        """
        if self.takes_more:
            return None
        given = tuple(keywords)
        unknown = next((name for name in given if name not in self.parameters), None)
        if unknown is not None:
            return f"takes no argument `{unknown}`"
        if positional > len(self.positional):
            return f"takes {len(self.positional)} arguments by position, not {positional}"
        filled = self.positional[:positional]
        twice = next((name for name in given if name in filled), None)
        if twice is not None:
            return f"gets `{twice}` by position and by name"
        missing = next((name for name in self.required if name not in filled and name not in given), None)
        return f"needs an argument `{missing}`" if missing is not None and not unseen else None


@cache
def _read() -> dict[str, Any]:
    read: dict[str, Any] = read_table("signatures.json")
    return read


@cache
def measured_in() -> Release:
    """The release of torch that the signatures are of."""
    major, minor = _read()["torch"].split(".")[:2]
    return int(major), int(minor)


@cache
def signatures() -> dict[str, Signature]:
    """Those of the functions and classes, by qualified name."""
    return {name: _signature(entry) for name, entry in _read()["signatures"].items()}


@cache
def scaler_methods() -> dict[str, Signature]:
    """Those of the public methods of a GradScaler, which are all it has."""
    return {name: _signature(entry) for name, entry in _read()["scaler"].items()}


def _signature(entry: dict[str, list[str]]) -> Signature:
    parameters = frozenset((*entry["positional"], *entry["keyword"]))
    return Signature(tuple(entry["positional"]), parameters, tuple(entry["required"]), bool(entry["more"]))
