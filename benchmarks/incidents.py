"""The public incidents on the released code that had them: found before the fix, gone after it.

    python benchmarks/incidents.py [--wheels DIR]

Downloads the releases as wheels, unpacks their Python files without installing them, and compares what ``amplint
check`` finds with what is known of each. Then ``--fix`` and ``--fix --unsafe-fixes`` run on copies: the result must
parse, a second run must change nothing, and all text outside the edits must stay as it was. Leaves with status 1 if
one expectation fails, 2 if a release cannot be had.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from places import at_each_place
from wheels import DownloadError, download, unpacked

from amplint.cli.main import main as command
from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult
from amplint.fix import fix_source
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Finding = dict[str, Any]
"""A finding as in the JSON report."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is to be found in one file, or not to be.

    One finding with one of ``codes`` (any code where empty) that starts in one of ``rows`` (anywhere where empty), in
    the class ``scope`` and on a line that contains ``text``.
    """

    codes: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    scope: str | None = None
    text: str = ""
    present: bool = True

    def __str__(self) -> str:
        what = "" if self.present else "no "
        what += " or ".join(self.codes) or ("a finding" if self.present else "finding")
        if self.rows:
            what += f" at line {' or '.join(map(str, self.rows))}"
        if self.scope is not None:
            what += f" in {self.scope}"
        if self.text:
            what += f" on a line with {self.text}"
        return what


@dataclass(frozen=True, slots=True)
class Release:
    """One file of one release, and what is expected of it."""

    requirement: str
    file: str
    expectations: tuple[Expectation, ...]


@dataclass(slots=True)
class Table:
    """Rows of expectation, what was found, and whether that is right."""

    rows: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, expectation: str, found: str, ok: bool) -> None:
        self.rows.append((expectation, found, ok))

    @property
    def failed(self) -> int:
        return sum(not ok for _, _, ok in self.rows)

    def __str__(self) -> str:
        width = max(len(expectation) for expectation, _, _ in self.rows)
        lines = [
            f"{expectation:<{width}}  {'ok' if ok else 'FAILED':<6}  {found}" for expectation, found, ok in self.rows
        ]
        lines.append(f"{len(self.rows) - self.failed} of {len(self.rows)} as expected")
        return "\n".join(lines)


LOOKUP_FREE = "vector_quantize_pytorch/lookup_free_quantization.py"
FUSED_LINEAR = "liger_kernel/ops/fused_linear_cross_entropy.py"
FUSED_LINEAR_FUNCTION = "LigerFusedLinearCrossEntropyFunction"
INT8 = "bitsandbytes/autograd/_functions.py"

RELEASES = (
    Release("vector-quantize-pytorch==1.12.9", LOOKUP_FREE, (Expectation(("AMP106",), rows=(191,)),)),
    Release("vector-quantize-pytorch==1.14.44", LOOKUP_FREE, (Expectation(("AMP102",), rows=(260, 273)),)),
    Release(
        "vector-quantize-pytorch==1.14.45",
        LOOKUP_FREE,
        (Expectation(("AMP604",), rows=(273, 386), text="with autocast():"), Expectation(rows=(321,), text="einsum(")),
    ),
    Release(
        "vector-quantize-pytorch==1.15.0",
        LOOKUP_FREE,
        (
            Expectation(("AMP102", "AMP106", "AMP604"), present=False),
            Expectation(text="einsum(", present=False),
        ),
    ),
    Release(
        "liger-kernel==0.3.1",
        FUSED_LINEAR,
        (
            Expectation(("AMP107",), rows=(122,)),
            Expectation(("AMP201",), scope=FUSED_LINEAR_FUNCTION),
            Expectation(("AMP602",), rows=(24, 25, 26)),
        ),
    ),
    Release("liger-kernel==0.5.2", FUSED_LINEAR, (Expectation(("AMP107",), rows=(119,)),)),
    Release(
        "liger-kernel==0.8.0", FUSED_LINEAR, (Expectation(("AMP107", "AMP201", "AMP202", "AMP602"), present=False),)
    ),
    Release("bitsandbytes==0.44.1", INT8, (Expectation(("AMP204",), rows=(473, 474)),)),
    Release(
        "bitsandbytes==0.45.0",
        INT8,
        (
            Expectation(("AMP204",), scope="MatMul8bitLt", present=False),
            Expectation(("AMP204",), scope="MatMul8bit"),
        ),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Check the releases that had the public incidents.")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="where wheels lie, or are downloaded to")
    wheels: Path | None = parser.parse_args(arguments).wheels
    table = Table()
    with tempfile.TemporaryDirectory(prefix="amplint-incidents-") as name:
        folder = Path(name).resolve()
        wheels = wheels or folder / "wheels"
        try:
            download((release.requirement for release in RELEASES), wheels)
        except DownloadError as error:
            print(error, file=sys.stderr)
            return 2
        files = {release: unpacked(release.requirement, folder, wheels) / release.file for release in RELEASES}
        found = check(files.values())
        for release, path in files.items():
            for expectation in release.expectations:
                _compare(table, release, expectation, path, [f for f in found if Path(f["filename"]) == path])
        for options in (("--fix",), ("--fix", "--unsafe-fixes")):
            copies = folder / "-".join(options).replace("--", "")
            for release, path in files.items():
                shutil.copytree(path.parents[len(Path(release.file).parts) - 1], copies / release.requirement)
            paths = {release.requirement: copies / release.requirement / release.file for release in RELEASES}
            for requirement, problem in _fix(paths, options):
                table.add(f"{requirement}: {' '.join(options)} is exact and final", problem or "yes", not problem)
    print(table)
    return 1 if table.failed else 0


def amplint(*arguments: str) -> str:
    """Run ``amplint check`` and return its stdout. Raises RuntimeError where it complains."""
    line = ["check", "--isolated", "--no-cache", "--exit-zero", *arguments]
    done = CliRunner().invoke(command, line)
    if done.exit_code != 0 or "internal error" in done.stderr:
        raise RuntimeError(
            f"amplint {' '.join(line)} left with status {done.exit_code}:\n{done.stderr}"
        ) from done.exception
    return done.stdout


def check(paths: Iterable[Path]) -> list[Finding]:
    """The findings in some files, at each of their places."""
    found: list[Finding] = json.loads(amplint("--output-format", "json", *map(str, paths)))
    return [place for finding in found for place in at_each_place(finding)]


def _compare(table: Table, release: Release, expectation: Expectation, path: Path, found: list[Finding]) -> None:
    source = path.read_text(encoding="utf-8")
    matching = [finding for finding in found if _matches(expectation, finding, source)]
    shown = ", ".join(f"{finding['code']} at {finding['location']['row']}" for finding in matching) or "nothing"
    table.add(f"{release.requirement}: {expectation}", shown, bool(matching) is expectation.present)


def _matches(expectation: Expectation, finding: Finding, source: str) -> bool:
    row: int = finding["location"]["row"]
    return (
        (not expectation.codes or finding["code"] in expectation.codes)
        and (not expectation.rows or row in expectation.rows)
        and (expectation.scope is None or row in _rows_of_class(source, expectation.scope))
        and expectation.text in source.splitlines()[row - 1]
    )


def _rows_of_class(source: str, name: str) -> range:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    raise LookupError(f"no class {name}")


def _fix(paths: dict[str, Path], options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Fix some files twice; for each, what is wrong with the result, or an empty string."""
    names = [str(path) for path in paths.values()]
    highest = Applicability.UNSAFE if "--unsafe-fixes" in options else Applicability.SAFE
    touched = {path: _touched_lines(path, highest) for path in paths.values()}
    before = {path: path.read_bytes() for path in paths.values()}
    amplint(*options, *names)
    once = {path: path.read_bytes() for path in paths.values()}
    amplint(*options, *names)
    for requirement, path in paths.items():
        yield requirement, _problem(before[path], once[path], path.read_bytes(), touched[path])


def _touched_lines(path: Path, highest: Applicability) -> set[str]:
    """The text of every line that an edit of some pass of the fixes lies on, as it stood before that pass."""
    touched: set[str] = set()
    options = Options(load_rules())

    def look(source: Source) -> FileResult:
        result = check_file(source, options)
        for fix in (finding.fix for finding in result.findings if finding.fix is not None):
            for edit in fix.edits:
                touched.update(source.line(row) for row in range(edit.span.start.row, edit.span.end.row + 1))
        return result

    source = Source(path, path.read_bytes())
    fix_source(source, look(source), highest, look)
    return touched


def _problem(before: bytes, once: bytes, twice: bytes, touched: set[str]) -> str:
    try:
        ast.parse(once)
    except SyntaxError as error:
        return f"does not parse: {error}"
    if once != twice:
        return "a second run changed more"
    return "" if _kept(before, once, touched) else "text outside the edits changed"


def _kept(before: bytes, after: bytes, touched: set[str]) -> bool:
    """Whether every run of lines that no edit touches is still there, in order, byte for byte, at either end too."""
    runs = [b""]
    for line in before.splitlines(keepends=True):
        if line.decode().rstrip("\r\n") in touched:
            runs.append(b"")
        else:
            runs[-1] += line
    if not after.startswith(runs[0]) or not after.endswith(runs[-1]):
        return False
    position = 0
    for run in runs:
        position = after.find(run, position)
        if position < 0:
            return False
        position += len(run)
    return touched != set() or before == after


if __name__ == "__main__":
    sys.exit(main())
