"""What a run went by: of each project its configuration, its torch, its scenarios, and what it does about precision."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.cli.main import counted
from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.infer.names.folders import root_of
from amplint.project.files import TooLargeError
from amplint.project.precision import places, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from amplint.cli.options import ReportingArguments
    from amplint.config import Config
    from amplint.engine import Options, Task
    from amplint.judging import Judged, Judging
    from amplint.project.precision import Asked
    from amplint.torch_range import TorchRange

SHOWN = 3
"""Places of each word that are named."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one project that are judged alike, whatever does not count in some of them."""

    arguments: ReportingArguments
    project: Path
    judged: Judged
    torch: TorchRange
    files: int

    @property
    def scenarios(self) -> str:
        """The scenarios, and why these."""
        options = self.judged.options
        run = options.judged_in(self.torch.newest)
        names = ", ".join(scenario.name for scenario in run)
        if options.scenarios is None:
            which = "the default ones" if run == options.judged else "those of the default ones that this torch has"
            return f"{names}; {which}, each where the code runs so"
        who = "--scenario" if self.arguments.scenario else _stating(self.judged.config, "scenarios")
        return f"{names}; everywhere, as they are named by {who}"

    @property
    def releases(self) -> str:
        """The releases of torch, and why these."""
        oldest, newest = (".".join(map(str, release)) for release in (self.torch.oldest, self.torch.newest))
        span = newest if oldest == newest else f"{oldest} to {newest}"
        if self.arguments.torch_version:
            return f"{span}, as --torch-version says"
        if self.judged.config.torch_version:
            return f"{span}, as {_stating(self.judged.config, 'torch_version')} says"
        stated = f"as {display_path(self.torch.stated_in)} says" if self.torch.stated_in else "nothing says which"
        return f"{span}, {stated}"

    @property
    def configuration(self) -> str:
        """The files that say what holds."""
        if self.arguments.isolated:
            return "none is read: --isolated"
        files = [display_path(part.path) for part in self.judged.config.parts if part.path is not None]
        return ", which extends ".join(files) or "none, so the defaults hold"


def _stating(config: Config, key: str) -> str:
    """The file of a configuration that states a key."""
    path = next((part.path for part in config.parts if getattr(part, key)), config.path)
    return display_path(path) if path is not None else "the configuration"


def groups(tasks: Iterable[Task], judging: Judging, arguments: ReportingArguments) -> list[Group]:
    """What each project is judged by, in the order of the files."""
    by_key: dict[tuple[object, ...], Group] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    for task in tasks:
        folder = task.path.parent
        judged = judging.valid(folder)
        project = project_of(*root_of(folder)) or folder
        torch = judged.options.torch_for(task.path)
        key = (project, judged.config.path, torch)
        by_key.setdefault(key, Group(arguments, project, judged, torch, 0))
        counts[key] += 1
    return [replace(group, files=counts[key]) for key, group in by_key.items()]


def head(tasks: Sequence[Task], judging: Judging, arguments: ReportingArguments) -> Iterator[str]:
    """One line for a terminal; none for no files."""
    found = groups(tasks, judging, arguments)
    if not found:
        return
    said = (
        f"configuration: {_common((group.configuration for group in found), 'several')}",
        f"torch {_common((group.releases for group in found), 'by project')}",
        f"scenarios: {_common((_short(group.judged.options) for group in found), 'by project')}",
    )
    yield f"Checking {counted(len(tasks), 'file')}; {'; '.join(said)} (-v says more)"


def _common(texts: Iterable[str], otherwise: str) -> str:
    different = set(texts)
    return different.pop() if len(different) == 1 else otherwise


def _short(options: Options) -> str:
    named = options.scenarios
    return "the default ones" if named is None else ", ".join(scenario.name for scenario in named)


def suggestion(tasks: Iterable[Task], judging: Judging, arguments: ReportingArguments) -> Iterator[str]:
    """What to do in a project without any configuration; nothing elsewhere."""
    given = arguments.isolated or arguments.config is not None
    if not given and all(judging.valid(task.path.parent).config.path is None for task in tasks):
        yield "No configuration yet: amplint init writes one, with the scenarios that this folder's code shows."


def lines(tasks: Iterable[Task], judging: Judging, arguments: ReportingArguments) -> Iterator[str]:
    """One paragraph for each project and way of judging, in the order of the files."""
    for group in groups(tasks, judging, arguments):
        options = group.judged.options
        yield f"{display_path(group.project)} ({counted(group.files, 'file')}):"
        yield f"  configuration: {group.configuration}"
        yield f"  torch: {group.releases}"
        yield f"  scenarios: {group.scenarios}; device {options.device}"
        yield f"  precision: {_precision(group.project)}"
        certainty, severity = options.threshold.certainty.value, options.threshold.severity.value
        yield f"  rules: {len(options.rules)}; from certainty {certainty} and severity {severity} up"


def _precision(project: Path) -> str:
    found: dict[str, list[Asked]] = {}
    try:
        for asked in places(project):
            found.setdefault(asked.word, []).append(asked)
    except TooLargeError:
        return "not looked for: the project is too large"
    if not found:
        return "no Python file names autocast or a 16-bit dtype"
    return "; ".join(f"{word} in {_shown(asked)}" for word, asked in sorted(found.items()))


def _shown(asked: list[Asked]) -> str:
    named = ", ".join(f"{display_path(one.path)}:{one.row}" for one in asked[:SHOWN])
    return named + (f" and {counted(len(asked) - SHOWN, 'more file')}" if len(asked) > SHOWN else "")
