"""What a run went by, in lines: of each project its torch, its scenarios, and what it does about precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.cli.main import counted
from amplint.files import display_path
from amplint.infer.names.folders import root_of
from amplint.project.files import TooLargeError
from amplint.project.precision import places, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplint.engine import Task
    from amplint.project.precision import Asked
    from amplint.torch_range import TorchRange

SHOWN = 3
"""Places of each word that are named."""


def lines(tasks: Iterable[Task]) -> Iterator[str]:
    """One paragraph for each project and way of judging, in the order of the files."""
    seen: set[tuple[object, ...]] = set()
    for task in tasks:
        project = project_of(*root_of(task.path.parent)) or task.path.parent
        options = task.options
        torch = options.torch_for(task.path)
        judged = ", ".join(scenario.name for scenario in options.judged)
        key = (project, torch, judged)
        if key in seen:
            continue
        seen.add(key)
        where = "each where the code runs so" if options.scenarios is None else "everywhere, as they are named"
        yield f"{display_path(project)}:"
        yield f"  torch: {_releases(torch)}"
        yield f"  scenarios: {judged}; {where}; device {options.device}"
        yield f"  precision: {_precision(project)}"


def _releases(torch: TorchRange) -> str:
    oldest, newest = (".".join(map(str, release)) for release in (torch.oldest, torch.newest))
    stated = f"as {display_path(torch.stated_in)} says" if torch.stated_in else "nothing says which"
    return f"{newest if oldest == newest else f'{oldest} to {newest}'}, {stated}"


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
