"""A pack of rules that misbehave, for the language server to survive."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amplint.infer.state.facts import FileFacts
    from amplint.rule import Suspect

STARTED, RELEASED = "busy", "released"
"""The files by which a busy rule says that it has begun, and is told to end."""


class _Nothing(Rule):
    severity = Severity.WARNING

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        self.misbehave(facts.path.parent)
        yield from ()

    def misbehave(self, folder: Path) -> None:
        raise NotImplementedError


class Busy(_Nothing):
    """Computes until it is released, or for two minutes."""

    code, name, tokens = "BAD101", "bad-busy", ("be_busy",)

    def misbehave(self, folder: Path) -> None:
        (folder / STARTED).touch()
        end = time.monotonic() + 120
        while not (folder / RELEASED).exists() and time.monotonic() < end:
            sum(range(1000))


class Raises(_Nothing):
    """Raises."""

    code, name, tokens = "BAD102", "bad-raises", ("be_broken",)

    def misbehave(self, folder: Path) -> None:
        raise TypeError("a rule's own mistake")


class Leaves(_Nothing):
    """Ends the process, as far as it can."""

    code, name, tokens = "BAD103", "bad-leaves", ("be_gone",)

    def misbehave(self, folder: Path) -> None:
        raise SystemExit(3)


class Prints(_Nothing):
    """Writes where the protocol is spoken, and reads from there."""

    code, name, tokens = "BAD104", "bad-prints", ("be_loud",)

    def misbehave(self, folder: Path) -> None:
        print("noise", flush=True)
        os.write(1, b"more noise\n")
        assert os.read(0, 1) == b""


def all_rules() -> list[Rule]:
    return [Busy(), Raises(), Leaves(), Prints()]
