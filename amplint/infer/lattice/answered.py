"""What is known of a test that was made: which scenarios it let through.

It is kept among the variables, under a name that no variable has, so that it follows the paths of the program as they
do.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import Value

if TYPE_CHECKING:
    import ast

ASKED = "?"
"""What the names begin with under which answers are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Answered(Value):
    """A test that was made: the scenarios in which it was true and false on the paths that lead here, a bit each.

    ``words`` are the variables that it reads, and the attributes with a dot, such as may change. ``since`` is the same
    until one of them does. Of variables that the branches left different, ``joined`` is what they hold since, ``true``
    and ``false`` what each branch left.
    """

    yes: int
    no: int
    words: frozenset[str]
    since: object
    true: dict[str, Value] = field(default_factory=dict)
    false: dict[str, Value] = field(default_factory=dict)
    joined: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Held(Value):
    """A test whose answer a variable holds; ``words`` as of one that was made, with that variable."""

    test: ast.expr
    words: frozenset[str]
