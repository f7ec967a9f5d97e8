"""Prints what checks of files ask the file system for outside of what a kept result is compared by, a line each; then
how many paths were asked for.

    python tests/asked_paths.py FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import amplint_rules

import amplint
from amplint.cache.surroundings import Places
from amplint.config import Configurations
from amplint.engine import check_file
from amplint.infer.names.folders import MARKS
from amplint.judging import Judging, judging_options
from amplint.planning import plan
from amplint.project.layout import SETTINGS, TEXTS

ABOVE = {*MARKS, *SETTINGS, "__init__.py", "ruff.toml", ".ruff.toml", "METADATA", "RECORD", "PKG-INFO"}
"""What is asked for by name above a project or beside it: marks, settings, metadata, and what the releases of torch and
the line length come from, which are compared for what they are."""


def asked_while(check: Any) -> set[tuple[str, Path]]:
    """The paths that a call opens, lists or asks about, each with how."""
    found: set[tuple[str, Path]] = set()
    originals = {name: getattr(os, name) for name in ("stat", "scandir", "listdir")}

    def noting(name: str) -> Any:
        def ask(path: Any = ".", *arguments: Any, **named: Any) -> Any:
            if not isinstance(path, int):
                found.add((name, Path(os.path.abspath(os.fsdecode(path)))))
            return originals[name](path, *arguments, **named)

        return ask

    opened.clear()
    for name in originals:
        setattr(os, name, noting(name))
    try:
        check()
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
    return found | {("open", path) for path in opened}


opened: list[Path] = []


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        name = os.fsdecode(arguments[0])
        if not name.startswith("<"):  # Python looks for the line of "<unknown>" when a text does not parse
            opened.append(Path(os.path.abspath(name)))


def main() -> None:
    judging = Judging(Configurations(), lambda config, rules: judging_options(config, rules, pedantic=True))
    tasks = plan([sys.argv[1]], judging, []).tasks
    sys.addaudithook(_on_event)
    own = [str(Path(str(package.__file__)).parent) for package in (amplint, amplint_rules)]
    python = tuple(map(str, {*own, *sys.path, sys.prefix, sys.base_prefix} - {""}))
    count = 0
    for task in tasks:
        for how, path in sorted(asked_while(lambda task=task: check_file(task.path, task.options))):
            inside = task.path.parent == path or Path(sys.argv[1]) in (path, *path.parents)
            if str(path).startswith(python) and not inside:
                continue
            count += 1
            where = Places().of(task.path.parent)
            if where.project in (path, *path.parents):
                covered = how != "open" or path.suffix in TEXTS or path.name in ABOVE
            else:
                covered = path.name in ABOVE or path in (where.root, *where.inside.parents)
            if not covered:
                print(f"{task.path}: {how} {path}")
    print(count)


if __name__ == "__main__":
    main()
