"""Which lines of a few files ran."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import CodeType, FrameType

    Tracer = Callable[[FrameType, str, Any], Any]

#: Tool numbers that Python leaves to anyone come first, then those meant for coverage tools, profilers and debuggers.
_TOOLS = (3, 4, 1, 2, 0)


class Coverage:
    """Records the executed lines of ``files`` within its ``with`` block; ask ``lines`` for them.

    From Python 3.12 on it counts beside any other tool and in all threads.  Before, it takes the place of a tracer that
    is set, in this thread and those started inside, and puts it back.
    """

    def __init__(self, files: Iterable[str | Path]) -> None:
        self._files = {os.path.realpath(path) for path in files}
        self._lines: dict[str, set[int]] = {path: set() for path in self._files}
        self._of: dict[CodeType, set[int] | None] = {}
        self._leave: Callable[[], None] | None = None

    def lines(self, filename: str | Path) -> frozenset[int]:
        """The rows that ran, from 1; empty for a file that was not asked for."""
        return frozenset(self._lines.get(os.path.realpath(filename), ()))

    def __enter__(self) -> Coverage:
        if self._files:
            self._leave = self._monitor() if sys.version_info >= (3, 12) else self._trace()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _recorded(self, code: CodeType) -> set[int] | None:
        """Where to put the lines of this code; None if it is not in one of the files."""
        if code not in self._of:
            name = code.co_filename
            self._of[code] = None if name.startswith("<") else self._lines.get(os.path.realpath(name))
        return self._of[code]

    def _monitor(self) -> Callable[[], None]:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = next((number for number in _TOOLS if monitoring.get_tool(number) is None), None)
        if tool is None:
            return self._trace()
        line = monitoring.events.LINE

        def executed(code: CodeType, row: int) -> Any:
            lines = self._recorded(code)
            if lines is not None:
                lines.add(row)
            return monitoring.DISABLE

        def leave() -> None:
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, line, None)
            monitoring.free_tool_id(tool)

        monitoring.use_tool_id(tool, "amplint")
        monitoring.register_callback(tool, line, executed)
        monitoring.set_events(tool, line)
        monitoring.restart_events()
        return leave

    def _trace(self) -> Callable[[], None]:
        def entered(frame: FrameType, event: str, argument: Any) -> Tracer | None:
            lines = self._recorded(frame.f_code)
            if lines is None:
                return None

            def within(frame: FrameType, event: str, argument: Any) -> Tracer:
                if event == "line":
                    lines.add(frame.f_lineno)
                return within

            return within

        before, before_in_threads = sys.gettrace(), threading.gettrace()

        def leave() -> None:
            sys.settrace(before)
            threading.settrace(before_in_threads)  # type: ignore[arg-type,unused-ignore]

        threading.settrace(entered)
        sys.settrace(entered)
        return leave
