"""``amplint report``: the smallest file that still gives a finding, for whoever mends a false alarm."""

from __future__ import annotations

import re
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amplint.cli.main import CLEAN, counted, deliver, error_message, message
from amplint.cli.options import JudgingArguments, judged_by
from amplint.config import UsageError
from amplint.engine import check_file
from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.notebook import is_notebook
from amplint.source import Source
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import FileResult, Finding
    from amplint.reduce.reduced import Reduced
    from amplint.rule_base import Announced
    from amplint.source import Location

_PLACE = re.compile(r"(?P<file>.+?):(?P<row>\d+)(?::(?P<column>\d+))?:?")
NEAREST = 3
"""Lines with a finding that are named where the one asked for has none."""


@dataclass(frozen=True, slots=True)
class Arguments(JudgingArguments):
    """The command line of one run, as given."""

    place: str
    timeout: float
    output_file: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of a file, and a column where one is given."""

    path: Path
    row: int
    column: int | None


@click.command("report")
@click.argument("place", metavar="FILE:LINE")
@judged_by
@click.option(
    *("--timeout", "timeout"),
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Write the smallest file found until then.",
)
@click.option("--output-file", type=click.Path(dir_okay=False), help="Write the file there instead of to stdout.")
def command(**arguments: Any) -> None:
    """Write a minimal file that still gives the finding at FILE:LINE, to send with a report of a false alarm.

    The file is made smaller as long as amplint, looking at it alone, finds the same: the same rule, scenarios and
    certainty. Names become neutral, comments go, strings are emptied. Its head says what it was found with.

    \b
    Where several rules find something on the line, --select CODE picks.
    FILE:LINE:COLUMN, as --output-format concise prints it, works too.

    \b
    Exit status: 0 written; 2 wrong usage, or there is no finding on that line, or it rests on other files.
    """
    sys.exit(run(Arguments(**arguments)))


def run(arguments: Arguments) -> int:
    """Find, reduce, write, and say the exit status. Raises UsageError."""
    from amplint.reduce.reduced import reduce_finding
    from amplint.report.progress import telling

    start = time.monotonic()
    place = _place(arguments.place)
    judging = arguments.judging()
    options = judging.valid_file(place.path).options
    judging.require(arguments.select, arguments.ignore)
    result = check_file(place.path, options)
    if result.error is not None:
        raise UsageError(result.error)
    for line in result.failures:
        error_message(line)
    finding, at = _picked(result, place)
    source = Source(place.path, place.path.read_bytes())
    rules = tuple(judging.rules[code] for code in sorted(judging.rules))
    with telling() as show, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        show(f"Reducing {display_path(place.path)}, {arguments.timeout:g} seconds at most")
        reduced = reduce_finding(finding, at, source, options, rules, result.followed, arguments.timeout)
    if reduced is None:
        raise UsageError(_not_alone(finding, result))
    name = Path(arguments.output_file).name if arguments.output_file is not None else "FILE"
    document = "\n".join([*_head(reduced, judging.rules[finding.code], name), reduced.text])
    deliver([document], arguments.output_file)
    message(_told(source, reduced, time.monotonic() - start))
    return CLEAN


def _place(text: str) -> _Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' names no line: give FILE:LINE, such as model.py:41")
    path = Path(found["file"]).absolute()
    if not path.is_file():
        raise UsageError(f"no such file: {found['file']}")
    if is_notebook(path):
        raise UsageError(f"{found['file']} is a notebook: report reads Python, such as the notebook saved as a script")
    return _Place(path, int(found["row"]), int(found["column"]) if found["column"] else None)


# ---- which finding ------------------------------------------------------------------------------------------------


def _picked(result: FileResult, place: _Place) -> tuple[Finding, Location]:
    """The one finding that is meant, and where on the line it begins. Raises UsageError."""
    here = [(finding, at) for finding in result.findings for at in _places(finding) if at.row == place.row]
    if place.column is not None:
        here = [(finding, at) for finding, at in here if at.column == place.column] or here
    shown = f"{display_path(place.path)}:{place.row}"
    if not here:
        raise UsageError(f"no finding at {shown}{_nearest(result.findings, place.row)}")
    if any(finding.code == UNPARSABLE.code for finding, _ in here):
        raise UsageError(f"there is nothing to reduce in {display_path(place.path)}: {here[0][0].message}")
    codes = sorted({finding.code for finding, _ in here})
    if len(codes) > 1:
        choices = " or ".join(f"--select {code}" for code in codes)
        raise UsageError(f"several rules find something at {shown}: pick one with {choices}")
    return here[0]


def _places(finding: Finding) -> list[Location]:
    """Where a finding begins, and where its other places in the file do."""
    also = (place.span for place in finding.also if place.filename == finding.filename)
    return [finding.span.start, *(span.start for span in also)]


def _nearest(findings: Sequence[Finding], row: int) -> str:
    rows = {at.row: finding.code for finding in findings for at in _places(finding)}
    if not rows:
        return ", nor anywhere else in the file (--pedantic shows what is merely possible)"
    near = sorted(sorted(rows, key=lambda each: (abs(each - row), each))[:NEAREST])
    return f"; nearest: {', '.join(f'line {each} ({rows[each]})' for each in near)}"


def _not_alone(finding: Finding, result: FileResult) -> str:
    others = sorted(display_path(path) for path in result.followed if path != finding.filename)
    rests = f" ({', '.join(others[:NEAREST])}{' and more' if len(others) > NEAREST else ''})" if others else ""
    return (
        f"{finding.code} at {display_path(finding.filename)}:{finding.span.start.row} rests on other files of the "
        f"project{rests} and does not show in one file: report it with a link to the project"
    )


def _told(source: Source, reduced: Reduced, seconds: float) -> str:
    """What came of it."""
    before, after = (len(text.splitlines()) for text in (source.text, reduced.text))
    imported = ", which hold what was imported" if reduced.inlined else ""
    wanting = [] if reduced.smallest else ["make it smaller"]
    wanting += [] if reduced.neutral else ["replace all names and strings"]
    stopped = f"; more time (--timeout) may {' and '.join(wanting)}" if wanting else ""
    took = f"from {before:,} to {counted(after, 'line')} in {seconds:.1f} s{imported}{stopped}"
    return f"{reduced.finding.code}: reduced {took}. Look through it before you send it."


# ---- the file -----------------------------------------------------------------------------------------------------


def _head(reduced: Reduced, rule: Announced, name: str) -> Iterator[str]:
    """Comments that say what the file shows, and with what."""
    from amplint.reduce.settings import versions

    finding = reduced.finding
    pack = f", of the rule pack {rule.pack}" if rule.pack else ""
    lines = [
        f"amplint report: {finding.code} {finding.name} ({finding.severity.value}, {finding.certainty.value}){pack}",
        finding.message.replace("\n", " "),
        f"Scenarios: {', '.join(finding.scenarios)}; device {finding.device}",
        f"With {versions()}",
        f"Show it again: {reduced.settings.command(name, isolated=not rule.pack)}",
        "Why it is a false alarm, or what should be said instead:",
    ]
    yield from (f"# {line}" for line in lines)
    yield ""
