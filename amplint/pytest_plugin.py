"""A plugin for pytest: with ``--amplint``, every ``amplint_example`` under the given paths becomes a test.

A test is one target (a class with an example, or the example of a file), run in a process of its own as by
``amplint verify``. It fails if a run fails, overflows or loses accuracy in mixed precision.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amplint.judging import Judged
    from amplint.verify.targets import Outline, Target
    from amplint.verify.verdict import Row


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--amplint``, ``--amplint-scenario`` and ``--amplint-device``."""
    group = parser.getgroup("amplint", "mixed precision")
    group.addoption("--amplint", action="store_true", help="run every amplint_example in mixed precision")
    group.addoption("--amplint-scenario", action="append", metavar="NAME", help="only this way of running; repeatable")
    group.addoption("--amplint-device", metavar="NAME", help="whose autocast policy to run by (default: cuda)")


def pytest_configure(config: pytest.Config) -> None:
    """The marker of the tests made here. Refuses what ``amplint verify`` would refuse."""
    config.addinivalue_line("markers", "amplint: an amplint_example run in mixed precision")
    if not config.getoption("--amplint"):
        return
    from amplint.config import UsageError

    if importlib.util.find_spec("torch") is None:
        raise pytest.UsageError('--amplint runs code and needs torch: pip install "amplint[verify]"')
    try:
        _judged(config, config.rootpath)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


def _judged(config: pytest.Config, folder: Path) -> Judged:
    """What to judge by, with the configuration that holds for a folder. Raises UsageError."""
    from amplint.judging import judged_in

    scenario, device = config.getoption("--amplint-scenario"), config.getoption("--amplint-device")
    return judged_in(folder, scenario=scenario or (), device=device)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The Python files that mention an example."""
    if file_path.suffix != ".py" or not parent.config.getoption("--amplint"):
        return None
    from amplint.verify.targets import EXAMPLE

    try:
        if EXAMPLE.encode() not in file_path.read_bytes():
            return None
    except OSError:
        return None
    collector: pytest.Collector = _ExampleFile.from_parent(parent, path=file_path)
    return collector


class _ExampleFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from amplint.source import Source, SourceError
        from amplint.verify.targets import EXAMPLE, outline, targets_of

        try:
            shape = outline(Source(self.path, self.path.read_bytes()))
        except SourceError:
            return
        for target in targets_of(self.path, shape, ()):
            name = f"amplint::{target.name or EXAMPLE}"
            yield _ExampleItem.from_parent(self, name=name, target=target, shape=shape)


class Unsafe(Exception):
    """What a run confirmed."""


class _ExampleItem(pytest.Item):
    def __init__(self, *, target: Target, shape: Outline, **rest: Any) -> None:
        super().__init__(**rest)
        self.target = target
        self.shape = shape
        self.add_marker("amplint")

    def runtest(self) -> None:
        from amplint.verify.quoted import quoted
        from amplint.verify.verdict import Verdict
        from amplint.verify.verification import Settings, verify_target

        judged = _judged(self.config, self.path.parent)
        root = judged.config.root or self.config.rootpath
        settings = Settings(judged.options, "cpu", root, judged.config.factories)
        rows = verify_target(self.target, self.shape, settings).rows
        bad = [row for row in rows if row.verdict is Verdict.CONFIRMED]
        if bad:
            raise Unsafe("\n".join([*map(_line, bad), *quoted(row.frames for row in bad)]))
        if all(row.verdict in (Verdict.NOT_RUNNABLE, Verdict.NEEDS_GPU) for row in rows):
            pytest.skip(f"{rows[0].verdict.value}: {rows[0].error}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Unsafe):
            return f"{self.target} is not safe in mixed precision:\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _line(row: Row) -> str:
    where = f" at {row.location[0]}:{row.location[1]}" if row.location else ""
    return f"  {row.scenario}, {row.mode}: {row.error}{where}"
