"""From a finding in a project to the smallest file that shows it alone."""

from __future__ import annotations

import ast
import time
from functools import partial
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.reduce.alone import Alone, Wanted, empty_folder, rows_of, statements
from amplint.reduce.inlining import with_imports
from amplint.reduce.neutral import neutralise
from amplint.reduce.reduction import Reduction, TimeUpError
from amplint.reduce.settings import candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amplint.engine import Options
    from amplint.finding import Finding
    from amplint.reduce.settings import Settings
    from amplint.rule_base import Announced
    from amplint.source import Location, Source

FOR_SIZE = 0.8
"""Of the time, what goes into making the file smaller; names are replaced in the rest."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The text, the finding in it, and the settings under which it shows.

    ``inlined``: imported files are in it; ``smallest`` and ``neutral``: the time sufficed to make it as small as
    amplint can, and to replace names and strings.
    """

    text: str
    finding: Finding
    settings: Settings
    inlined: bool
    smallest: bool
    neutral: bool


def reduce_finding(
    finding: Finding,
    at: Location,
    source: Source,
    options: Options,
    rules: Sequence[Announced],
    followed: frozenset[Path],
    seconds: float,
) -> Reduced | None:
    """The smallest file found in that time; None where the finding does not show without the rest of the project.

    ``at`` is where in the ``source`` it begins, or another of its places does; ``followed`` are the other files that it
    rests on.
    """
    start = time.monotonic()
    tree = ast.parse(source.text.removeprefix("\ufeff"))
    marked = _innermost(tree, source, at)
    with empty_folder() as folder:
        for whole in _wholes(tree, finding.filename, followed):
            for settings in candidates(finding, finding.filename, options, rules):
                alone = Alone(folder, settings.options(rules), Wanted.of(finding))
                reduction = Reduction(whole, marked, alone.shows, start + FOR_SIZE * seconds)
                if reduction.begins():
                    smallest = _in_time(reduction.run)
                    reduction.deadline = start + seconds
                    neutral = _in_time(partial(neutralise, reduction))
                    found = alone.finding(reduction.text, reduction.rows)
                    assert found is not None
                    return Reduced(reduction.text, found, settings, whole is not tree, smallest, neutral)
    return None


def _wholes(tree: ast.Module, path: Path, followed: frozenset[Path]) -> Iterator[ast.Module]:
    """The file, and the file with what it imports from its project in it."""
    yield tree
    if followed:
        whole = with_imports(tree, path)
        if whole is not None:
            yield whole


def _in_time(step: Callable[[], None]) -> bool:
    """Whether a step came to its end before the time was up."""
    try:
        step()
    except TimeUpError:
        return False
    return True


def _innermost(tree: ast.Module, source: Source, at: Location) -> ast.stmt:
    """The statement that a place belongs to; a decorator's is what it decorates."""
    every = statements(tree)
    on_row = [statement for statement in every if at.row in rows_of(statement)]
    begun = [statement for statement in every if source.span(statement).start <= at]
    return ([statement for statement in on_row if statement in begun] or on_row or begun)[-1]
