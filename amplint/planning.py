"""From the paths that are named to the files to check, each with what it is judged by."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.engine import Task
from amplint.files import find_files
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.config import Config
    from amplint.judging import Judging
    from amplint.passed_over import PassedOver


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to check, by path, and the configuration of each; a line for each path or configuration that cannot be
    read; what is passed over."""

    tasks: tuple[Task, ...]
    configs: tuple[Config, ...]
    errors: tuple[str, ...]
    passed_over: PassedOver


def plan(paths: Sequence[str], judging: Judging, selectors: Sequence[Sequence[str]]) -> Plan:
    """What a check of files and folders comes to. Raises UsageError for a selector that matches no rule."""
    found = find_files(paths, judging.configurations)
    for folder in filter(os.path.isdir, paths):
        judging.of(Path(os.path.abspath(folder)))
    judged = [(file, by) for file in found.files if (by := judging.of_file(file.path)) is not None]
    tasks = tuple(Task(file.path, file.size, by.options) for file, by in judged)
    judging.require(*selectors)
    return Plan(
        tasks, tuple(by.config for _, by in judged), (*found.errors, *judging.configurations.errors), found.passed_over
    )
