"""Rows of the result: one for each target, scenario, mode and finding, as the contract has them."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


class Verdict(str, Enum):
    """``clean``: ran, nothing wrong, no finding concerned. ``not-reproduced`` is never called a false alarm."""

    CONFIRMED = "confirmed"
    CLEAN = "clean"
    NOT_REPRODUCED = "not-reproduced"
    NOT_REACHED = "not-reached"
    NOT_RUNNABLE = "not-runnable"
    NEEDS_GPU = "needs-gpu"


class FixEffect(str, Enum):
    """What the codemod did to the cell."""

    CURES = "cures"
    DOES_NOT_CURE = "does-not-cure"
    CHANGES_NUMERICS = "changes-numerics"


FIX_SAID = {
    FixEffect.CURES: "the fix cures it",
    FixEffect.DOES_NOT_CURE: "the fix does not cure it",
    FixEffect.CHANGES_NUMERICS: "the fix changes numerics",
}


@dataclass(frozen=True)
class Row:
    """``built`` and ``inputs`` are what was built and passed; ``variant`` says how it differs from what is built first.
    ``frames`` are the lines of user code that a failure went through. ``location`` is where it failed, ``claimed_at``
    where the finding lies; ``largest_error`` is relative to the largest value, where the fix was run. ``asked`` is the
    target as the command line names it, where that is not ``target``, and ``given`` the options of this run that decide
    what comes out."""

    target: str
    scenario: str
    mode: str
    device: str
    run_on: str
    verdict: Verdict
    code: str | None = None
    fingerprint: str | None = None
    error: str | None = None
    location: tuple[str, int] | None = None
    built: str | None = None
    inputs: str | None = None
    variant: str | None = None
    frames: tuple[tuple[str, int], ...] = ()
    claimed_at: tuple[str, int] | None = None
    fix: FixEffect | None = None
    largest_error: float | None = None
    seconds: float = 0.0
    how: str | None = None
    advice: str = ""
    asked: str | None = None
    given: tuple[str, ...] = ()

    @property
    def reproduce(self) -> str:
        """The command that runs this again, from anywhere."""
        return self.command(lambda path: path)

    def command(self, shown: Callable[[str], str]) -> str:
        """The command that runs this again, with the path as it is to be shown."""
        path, separator, name = (self.asked or self.target).rpartition("::")
        target = f"{shown(path)}{separator}{name}" if separator else shown(name)
        device = [] if self.device == "cuda" else ["--device", self.device]
        scenario = ["--scenario", self.scenario]
        return shlex.join(["amplint", "verify", target, *scenario, *device, "--run-on", self.run_on, *self.given])

    def to_json(self, *, fix_check: bool) -> dict[str, Any]:
        """The contract's object; ``fix`` only where fixes were run."""
        ran = ("target", "scenario", "mode", "device", "run_on", "verdict", "code", "fingerprint", "error")
        place = {"filename": self.location[0], "row": self.location[1]} if self.location else None
        data = {name: getattr(self, name) for name in ran} | {"location": place}
        data |= {name: getattr(self, name) for name in ("built", "inputs", "variant")}
        if fix_check:
            data |= {"fix": self.fix, "largest_error": self.largest_error}
        return {**data, "seconds": self.seconds, "reproduce": self.reproduce}
