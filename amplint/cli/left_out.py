"""What a check leaves out of what is found, and writes down so that later ones do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from amplint.config import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from amplint.baseline import Baseline
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
    @property
    def quiet(self) -> bool: ...


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
        self._arguments = arguments
        self._baselines: Baselines | None = None
        self._earlier: Baseline | None = None
        self._changed: Changed | None = None
        if arguments.baseline is not None:
            self._read().of(Path(os.path.abspath(arguments.baseline)))
        if arguments.write_baseline is not None:
            from amplint.cli.baselines import earlier_baseline

            self._earlier = earlier_baseline(arguments.write_baseline)
        if arguments.diff_base is not None:
            from amplint.cli.changed import Changed

            self._changed = Changed(arguments.diff_base)

    def _read(self) -> Baselines:
        if self._baselines is None:
            from amplint.cli.baselines import Baselines

            self._baselines = Baselines()
        return self._baselines

    def narrowed(self, judged: Iterable[tuple[Task, Config]], paths: Iterable[str]) -> list[Task]:
        """The files to check, each with what is left out in it. Raises UsageError."""
        tasks = [self._without_known(task, config) for task, config in judged]
        return tasks if self._changed is None else self._changed.tasks(tasks, paths)

    def narrowed_stdin(self, task: Task, config: Config, source: Source) -> Task:
        """The same for what stdin holds. Raises UsageError."""
        task = self._without_known(task, config)
        return task if self._changed is None else self._changed.stdin(task, source)

    def _without_known(self, task: Task, config: Config) -> Task:
        if config.baseline is None or self.writes_baseline:
            return task
        return self._read().narrowed(task, config.baseline)

    @property
    def writes_baseline(self) -> bool:
        """Whether what is found is written down, and nothing reported."""
        return self._arguments.write_baseline is not None

    def write_baseline(self, results: Sequence[FileResult]) -> None:
        """Write down what was found. Raises UsageError."""
        from amplint.cli.baselines import write_baseline

        said = write_baseline(self._arguments.write_baseline or "", self._earlier, results)
        if not self._arguments.quiet:
            click.echo(said, err=True)

    @property
    def everything(self) -> bool:
        """Whether there were files, and none of them changed."""
        return self._changed is not None and self._changed.nothing

    def summary(self, results: Sequence[FileResult]) -> Iterator[str]:
        """What was left out, in lines."""
        if self._changed is not None:
            yield from self._changed.summary()
        if self._baselines is not None:
            yield from self._baselines.summary(results, self._arguments.paths)


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
