"""What an operator is: a way in which people break precision, decided by syntax alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.edits import Edit
    from mutants.sources import File

Edits = Iterator[tuple["Edit", ...]]
"""What an operator can do to a file: one mutant each, its edits all in one place."""


@dataclass(frozen=True, slots=True)
class Operator:
    """``find`` yields the edits. Whether they hurt is decided by running.

    ``numeric``: it changes numbers, not dtypes, so a mutant that no input shows is undecided and not harmless.
    ``inference``: autograd refuses the form, so it is run without gradients only.
    """

    name: str
    find: Callable[[File], Edits]
    numeric: bool = False
    inference: bool = False
