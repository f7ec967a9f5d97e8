"""What reaches the handlers of a ``try`` statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.state.activation import Env
from amplint.infer.state.meeting import environment, met

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


class Catch:
    """Every point at which something may raise inside a block, met in one; ``thrown``: where a statement raises."""

    def __init__(self) -> None:
        self.reached = Env(0, {})
        self.thrown = Env(0, {})

    def note(self, frame: Frame, *, thrown: bool) -> None:
        """Something may raise where the function is now."""
        if frame.live:
            here = environment(frame)
            self.reached = met(frame.session, self.reached, here)
            if thrown:
                self.thrown = met(frame.session, self.thrown, here)
