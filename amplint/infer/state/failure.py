"""Operations that raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from amplint.source import Span


@dataclass(frozen=True, slots=True)
class Failure:
    """An operation that raises in some scenarios, in the branches that ``path`` names by ``id``, outermost first.

    ``made`` is the tensor that is out of place, ``maker`` the function that made it, by file and line, both unset where
    that is not known. ``sure``: it raises on every path. Else only where what ``maker`` made is used, as all that the
    same call of it made then is. ``last``: whatever another tensor is, nothing behind it is reached.
    """

    node: ast.expr | ast.stmt
    scenarios: frozenset[str]
    path: tuple[int, ...]
    sure: bool
    made: tuple[str, Span] | None
    maker: tuple[str, int] | None
    last: bool = False
