"""What a check leaves out of what is found, and writes down so that later ones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from amplint.config import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from amplint.cli.baselines import Baselines
    from amplint.cli.changed import Changed
    from amplint.config import Config
    from amplint.engine import Task
    from amplint.finding import FileResult
    from amplint.source import Source

_F = TypeVar("_F", bound=Callable[..., Any])


class Arguments(Protocol):
    """What of the command line decides it."""

    @property
    def paths(self) -> tuple[str, ...]: ...
    @property
    def baseline(self) -> str | None: ...
    @property
    def write_baseline(self) -> str | None: ...
    @property
    def diff_base(self) -> str | None: ...


def narrowing_options(command: _F) -> _F:
    """Give a command the options of :class:`LeftOut`."""
    options = (
        click.option("--baseline", metavar="FILE", help="Leave out what this baseline knows."),
        click.option("--write-baseline", metavar="FILE", help="Write what is found as a baseline; report nothing."),
        click.option("--diff-base", metavar="REV", help="Report only what lines bring that changed since REV (git)."),
        click.option("--add-ignore", is_flag=True, help="Write `# amplint: ignore[CODE]` where something is found."),
    )
    for option in reversed(options):
        command = option(command)
    return command


class LeftOut:
    """The baselines and changed lines of one run. Raises UsageError for what does not go together or cannot be used."""

    def __init__(self, arguments: Arguments) -> None:
        self._paths = arguments.paths
        self._baselines: Baselines | None = None
        self._changed: Changed | None = None
        self._reading = arguments.write_baseline is None
        if arguments.baseline is not None:
            self._baselines = _baselines(arguments.baseline)
        if arguments.diff_base is not None:
            from amplint.cli.changed import Changed

            self._changed = Changed(arguments.diff_base)

    def narrowed(self, judged: Iterable[tuple[Task, Config]], paths: Iterable[str]) -> list[Task]:
        """The files to check, each with what is left out in it. Raises UsageError."""
        tasks = [self._without_known(task, config) for task, config in judged]
        return tasks if self._changed is None else self._changed.tasks(tasks, paths)

    def narrowed_stdin(self, task: Task, config: Config, source: Source) -> Task:
        """The same for what stdin holds. Raises UsageError."""
        task = self._without_known(task, config)
        return task if self._changed is None else self._changed.stdin(task, source)

    def _without_known(self, task: Task, config: Config) -> Task:
        if not self._reading or (self._baselines is None and config.baseline_path is None):
            return task
        self._baselines = self._baselines or _baselines(None)
        return self._baselines.narrowed(task, config)

    @property
    def everything(self) -> bool:
        """Whether there were files, and none of them changed."""
        return self._changed is not None and self._changed.nothing

    def summary(self, results: Sequence[FileResult]) -> Iterator[str]:
        """What was left out, in lines."""
        if self._changed is not None:
            yield from self._changed.summary()
        if self._baselines is not None:
            yield from self._baselines.summary(results, self._paths)


def _baselines(given: str | None) -> Baselines:
    from amplint.cli.baselines import Baselines

    return Baselines(given)


def check_together(given: Mapping[str, bool]) -> None:
    """Raise UsageError for options that do not go with one that writes findings down, or with stdin."""
    writing = [option for option in ("--write-baseline", "--add-ignore") if given[option]]
    if len(writing) > 1:
        raise UsageError(f"{' and '.join(writing)} do not go together: run one after the other")
    for option, with_it in (("--write-baseline", _NOT_WITH_WRITING), ("--add-ignore", _NOT_WITH_ADDING)):
        for other in with_it:
            if given[option] and given[other]:
                raise UsageError(f"{option} does not go with {'- (stdin)' if other == '-' else other}")
    for option in ("--baseline", "--diff-base"):
        if given["-"] and given[option] and not given["--stdin-filename"]:
            raise UsageError(f"{option} needs --stdin-filename: it goes by the file whose text stdin holds")


_NOT_WITH_ADDING = ("--fix", "--diff", "--verify", "-")
_NOT_WITH_WRITING = (*_NOT_WITH_ADDING, "--baseline", "--diff-base", "--statistics", "--output-file")
