"""``check --verify``: run what can be run of what was found, and set the verdict beside it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.cli.main import counted, message
from amplint.cli.running import Work, ending_in_order, hardware, repeated, verify_all
from amplint.engine import Task, check_file
from amplint.files import display_path
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.notebook import is_notebook
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amplint.cli.options import JudgingArguments
    from amplint.finding import FileResult, Finding
    from amplint.judging import Judging
    from amplint.verify.proof import Proof
    from amplint.verify.verdict import Row

_NAMED = 3
"""How many files are named before the rest is counted."""


def proofs(
    arguments: JudgingArguments, judging: Judging, tasks: Sequence[Task], results: Iterable[FileResult]
) -> dict[tuple[Path, str], Proof]:
    """What runs say about each finding, by its file and fingerprint, and whether its fix cures it."""
    from amplint.verify.proof import proof

    all_found = [result for result in results if result.findings]
    found = [result for result in all_found if not is_notebook(result.path)]
    if len(found) < len(all_found):
        message(f"{counted(len(all_found) - len(found), 'notebook')} not run: --verify runs Python files")
    if not found:
        return {}
    message(f"running what was found in {_files([result.path for result in found])} (--verify imports and runs it)")
    by_path = {task.path: task for task in tasks}
    at_each_place: dict[Path, tuple[Finding, ...]] = {}
    work: list[Work] = []
    for result in found:
        task = by_path[result.path]
        findings, made = _work(arguments, judging, task)
        at_each_place[result.path] = findings
        work += made
    with ending_in_order():
        done = verify_all(work)
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in (row for verified in done for row in verified.rows):
        if row.fingerprint is not None:
            rows[row.target.rpartition("::")[0], row.fingerprint].append(row)
    return {
        (result.path, finding.fingerprint): proof(
            finding,
            [
                row
                for fingerprint in _fingerprints(finding, at_each_place[result.path])
                for row in rows[str(result.path.resolve()), fingerprint]
            ],
            judging.rules.get(finding.code),
        )
        for result in found
        for finding in result.findings
    }


def _files(paths: Sequence[Path]) -> str:
    named = [str(display_path(path)) for path in paths[:_NAMED]]
    more = len(paths) - len(named)
    return ", ".join(named) + (f" and {counted(more, 'more file')}" if more else "")


def _work(arguments: JudgingArguments, judging: Judging, task: Task) -> tuple[tuple[Finding, ...], list[Work]]:
    """The findings of a file, each at each of its places, and what to run for them in the scenarios that they name."""
    from amplint.verify.targets import outline, targets_of
    from amplint.verify.verification import Settings

    path = task.path.resolve()
    options = replace(task.options, each_place=True, fix=None)
    findings = check_file(path, options, task.narrowing).findings
    try:
        shape = outline(Source(path, path.read_bytes()))
    except (OSError, SourceError):
        return findings, []
    config = judging.valid(task.path.parent).config
    settings = Settings(
        options=options,
        run_on=hardware("auto", options.device),
        root=(config.root or path.parent).resolve(),
        factories=config.factories,
        fix_check=True,
        given=repeated(arguments),
    )
    work = []
    for target in targets_of(path, shape, findings):
        concerned = {name for finding in target.findings for name in finding.scenarios}
        if concerned:
            scenarios = tuple(scenario.name for scenario in SCENARIOS if scenario.name in concerned)
            work.append(Work(target, shape, replace(settings, run_in=scenarios)))
    return findings, work


def _fingerprints(finding: Finding, at_each_place: Iterable[Finding]) -> list[str]:
    """Those of a finding at its own and its other places in the file."""
    spans = {finding.span, *(place.span for place in finding.also if place.filename == finding.filename)}
    others = [one.fingerprint for one in at_each_place if one.span in spans]
    return list(dict.fromkeys([finding.fingerprint, *others]))
