"""From a finding in a project to the smallest file that shows it alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amplint.reduce.alone import Alone, Wanted, empty_folder, rows_of, statements
from amplint.reduce.inlining import with_imports
from amplint.reduce.neutral import neutralise
from amplint.reduce.reduction import Reduction, TimeUpError
from amplint.reduce.settings import candidates

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amplint.engine import Options
    from amplint.finding import Finding
    from amplint.reduce.settings import Settings
    from amplint.rule_base import Rule


@dataclass(frozen=True, slots=True)
class Reduced:
    """The text, the finding in it, and the settings under which it shows. ``inlined``: imported files are in it;
    ``finished``: the time sufficed."""

    text: str
    finding: Finding
    settings: Settings
    inlined: bool
    finished: bool


def reduce_finding(
    finding: Finding,
    row: int,
    tree: ast.Module,
    options: Options,
    rules: Sequence[Rule],
    followed: frozenset[Path],
    seconds: float,
) -> Reduced | None:
    """The smallest file found in that time; None where the finding does not show without the rest of the project.

    ``row`` is where the finding lies, ``tree`` that of its file, ``followed`` the other files that it rests on.
    """
    deadline = time.monotonic() + seconds
    marked = _innermost(tree, row)
    with empty_folder() as folder:
        for whole in _wholes(tree, finding.filename, followed):
            for settings in candidates(finding, finding.filename, options, rules):
                alone = Alone(folder, settings.options(rules), Wanted.of(finding))
                reduction = Reduction(whole, marked, alone.shows, deadline)
                if reduction.begins():
                    return _smallest(reduction, alone, settings, inlined=whole is not tree)
    return None


def _wholes(tree: ast.Module, path: Path, followed: frozenset[Path]) -> Iterator[ast.Module]:
    """The file, and the file with what it imports from its project in it."""
    yield tree
    if followed:
        whole = with_imports(tree, path)
        if whole is not None:
            yield whole


def _smallest(reduction: Reduction, alone: Alone, settings: Settings, *, inlined: bool) -> Reduced:
    finished = True
    try:
        reduction.run()
        neutralise(reduction)
    except TimeUpError:
        finished = False
    found = alone.finding(reduction.text, reduction.rows)
    assert found is not None
    return Reduced(reduction.text, found, settings, inlined, finished)


def _innermost(tree: ast.Module, row: int) -> ast.stmt:
    """The statement that a row belongs to."""
    around = [statement for statement in statements(tree) if row in rows_of(statement)]
    return around[-1]
