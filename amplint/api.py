"""Checks from Python: what the command line prints, as :class:`~amplint.finding.Finding` objects.

>>> import amplint
>>> code = '''
... import torch
... from torch import nn
...
... class Head(nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.proj = nn.Linear(8, 8)
...
...     def forward(self, x: torch.Tensor):
...         return self.proj(x.float())
... '''
>>> for finding in amplint.check_source(code, scenarios=["bf16"]):
...     print(finding.code, finding.severity.value, finding.span.start.row, finding.scenarios)
AMP102 error 11 ('bf16',)

A name that does not exist is an error at once, before anything is checked:

>>> amplint.check_source(code, select=["AMP999"])
Traceback (most recent call last):
    ...
amplint.config.UsageError: unknown rule selector 'AMP999' (did you mean 'AMP901'?)
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from amplint import contents
from amplint.config import Configurations, UsageError
from amplint.engine import check_file, check_files
from amplint.finding import Certainty, Severity
from amplint.judging import Judging, judging_options
from amplint.nearest import nearest
from amplint.planning import plan
from amplint.source import Source
from amplint.threshold import POSSIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from amplint.engine import Results
    from amplint.finding import Finding

    AnyPath: TypeAlias = "str | os.PathLike[str]"
    Names: TypeAlias = "str | Iterable[str]"
    """One name, or several with commas; or some of these."""


_Level = TypeVar("_Level", Certainty, Severity)


class CheckFailed(Exception):
    """Some files could not be read, or amplint failed on them; the findings of all others had been given before.

    ``failures`` has one line for each.
    """

    def __init__(self, failures: Iterable[str]) -> None:
        self.failures = tuple(failures)
        super().__init__("\n".join(self.failures))

    def __reduce__(self) -> tuple[type[CheckFailed], tuple[tuple[str, ...]]]:
        return CheckFailed, (self.failures,)


def check_source(
    code: str | bytes,
    *,
    filename: AnyPath = "<string>",
    select: Names = (),
    ignore: Names = (),
    extend_select: Names = (),
    scenarios: Names = (),
    device: str | None = None,
    torch_version: str | None = None,
    pedantic: bool = False,
    min_certainty: str | None = None,
    min_severity: str | None = None,
    config: AnyPath | None = None,
    isolated: bool = False,
    no_plugins: bool = False,
    on_failure: Callable[[str], None] | None = None,
) -> Iterator[Finding]:
    """The findings in one file's text, in its order.

    ``filename`` is the path that they are reported under, and where the text's project and configuration are looked
    for; no such file has to exist. All else is as in :func:`check_paths`.
    """
    selectors = (_several(select), _several(ignore), _several(extend_select))
    asked = _Asked(
        *selectors,
        _several(scenarios),
        device,
        torch_version,
        _least(pedantic, min_certainty),
        _level(Severity, "min_severity", min_severity),
    )
    judging = asked.judging(config, isolated=isolated, plugins=not (isolated or no_plugins))
    path = Path(os.path.abspath(filename))
    options = judging.valid_file(path).options
    judging.require(*selectors)
    source = Source(path, code.encode() if isinstance(code, str) else code)

    def results() -> Results:
        contents.look_again()
        yield check_file(source, options)

    return _findings(results(), [], on_failure)


def check_paths(
    paths: AnyPath | Iterable[AnyPath],
    *,
    select: Names = (),
    ignore: Names = (),
    extend_select: Names = (),
    scenarios: Names = (),
    device: str | None = None,
    torch_version: str | None = None,
    pedantic: bool = False,
    min_certainty: str | None = None,
    min_severity: str | None = None,
    config: AnyPath | None = None,
    isolated: bool = False,
    no_plugins: bool = False,
    executor: Executor | None = None,
    on_failure: Callable[[str], None] | None = None,
) -> Iterator[Finding]:
    """The findings in files and folders, by path, then by place; a file is checked when its findings are asked for.

    The options are those of ``amplint check``. ``executor`` is any :class:`concurrent.futures.Executor`: all files are
    given to it at once, and the order stays the same. Its workers read the files themselves, each one file at a time
    whatever its threads: processes make a check faster, threads do not. Without it one file after another is checked
    in this process.

    A file that cannot be read, or that amplint fails on, costs no other file its findings. ``on_failure`` is called
    with one line for each; without it, they are raised together as :class:`CheckFailed` behind the last finding.
    Raises UsageError, before anything is checked, for options that do not exist or contradict each other.
    """
    selectors = (_several(select), _several(ignore), _several(extend_select))
    asked = _Asked(
        *selectors,
        _several(scenarios),
        device,
        torch_version,
        _least(pedantic, min_certainty),
        _level(Severity, "min_severity", min_severity),
    )
    judging = asked.judging(config, isolated=isolated, plugins=not (isolated or no_plugins))
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    planned = plan([os.fspath(path) for path in given], judging, selectors)

    def results() -> Results:
        contents.look_again()
        yield from check_files(planned.tasks, jobs=1, executor=executor)

    return _findings(results(), planned.errors, on_failure)


class _Asked(NamedTuple):
    """What a call asks for beside the configuration."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    extend_select: tuple[str, ...]
    scenario: tuple[str, ...]
    device: str | None
    torch_version: str | None
    min_certainty: Certainty | None
    min_severity: Severity | None

    def judging(self, config: AnyPath | None, *, isolated: bool, plugins: bool) -> Judging:
        configurations = Configurations(only=os.fspath(config) if config is not None else None, isolated=isolated)
        return Judging(
            configurations,
            lambda found, rules: judging_options(found, rules, **self._asdict()),
            plugins=plugins,
        )


def _least(pedantic: bool, min_certainty: str | None) -> Certainty | None:
    least = _level(Certainty, "min_certainty", min_certainty)
    if not pedantic:
        return least
    if least not in (None, POSSIBLE):
        raise UsageError(f"pedantic is a min_certainty of 'possible': '{min_certainty}' contradicts it")
    return POSSIBLE


def _level(levels: type[_Level], keyword: str, name: str | None) -> _Level | None:
    if name is None:
        return None
    known = [level.value for level in levels]
    if name not in known:
        raise UsageError(f"unknown {keyword} '{name}'{nearest(name, known) or '; known: ' + ', '.join(known)}")
    return levels(name)


def _several(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _findings(results: Results, failures: Iterable[str], on_failure: Callable[[str], None] | None) -> Iterator[Finding]:
    """The findings of each file, and behind the last what failed."""
    told: list[str] = []
    tell = on_failure or told.append
    for line in failures:
        tell(line)
    with closing(results):
        for result in results:
            for line in (*result.failures, *([result.error] if result.error else ())):
                tell(line)
            yield from result.findings
    if told:
        raise CheckFailed(told)
