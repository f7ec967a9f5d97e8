"""What an analysis takes for granted of callers that it does not see."""

from __future__ import annotations

from typing import NamedTuple

from amplint.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Which callers there are, and what they choose. By default a module calls whatever nothing else calls, and chooses
    anything.

    ``users``: what nothing in the project calls is entered as the program's user enters it, with a scenario's inputs;
    beside that modules call methods of modules, and anything calls the rest. ``usual``: callers leave options at their
    defaults, or pass what the file's own builders pass, and a way that raises then is not taken. ``idle``: a loop may
    have nothing to run over; else a tensor is behind it what a pass leaves.
    """

    users: bool = False
    usual: bool = False
    idle: bool = False


class Settled(NamedTuple):
    """What every caller of the file that is analysed is known to leave as it is: the parameters that stay at their
    defaults, by the line of the function and by name, and the attributes that only their own objects set, by name.

    ``open``: the functions, by line, that other files may call, with other arguments than the file itself. ``given``:
    the names of constants at the top of the file that other files set.
    """

    parameters: frozenset[tuple[int, str]] = frozenset()
    attributes: frozenset[str] = frozenset()
    open: frozenset[int] = frozenset()
    given: frozenset[str] = frozenset()


NOTHING_SETTLED = Settled()

ANY_CALLER = Assumptions()
"""For findings: they hold whatever callers choose. A loop hardly ever has nothing to run over."""
AS_USED = Assumptions(users=True, usual=True, idle=True)
"""For dtypes to show: those of a plain run of the program."""
