"""What an analysis takes for granted of callers that it does not see."""

from __future__ import annotations

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


ANY_CALLER = Assumptions()
"""For findings: they hold whatever callers choose. A loop hardly ever has nothing to run over."""
AS_USED = Assumptions(users=True, usual=True, idle=True)
"""For dtypes to show: those of a plain run of the program."""
