"""The bar that a long check shows on a terminal."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import rich.progress

from amplint.report import progress

if TYPE_CHECKING:
    import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_estimate_does_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files come first, and take as long as they are large."""
    now = [0.0]
    bars: list[rich.progress.Progress] = []

    class Seen(rich.progress.Progress):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            bars.append(self)

    monkeypatch.setattr("rich.console.monotonic", lambda: now[0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(rich.progress, "Progress", Seen)
    monkeypatch.setattr(sys, "stderr", Terminal())
    sizes = [400, 200, 100, *[50] * 4, *[10] * 20, *[1] * 100]
    estimates = []
    with progress.counting(sum(sizes)) as advance:
        for number, size in enumerate(sizes, 1):
            now[0] += size
            advance(size)
            remaining = bars[0].tasks[0].time_remaining
            if number > 1:
                estimates.append((remaining, sum(sizes[number:])))
    assert len(bars) == 1
    assert all(remaining is not None and abs(remaining - true) <= 1 for remaining, true in estimates)


def test_no_bar_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.counting(10) as advance:
        advance(10)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
