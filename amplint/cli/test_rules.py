"""``amplint test-rules``: the examples of a rule pack, as amplint's own tests run those of its rules."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplint.cli.main import CLEAN, FAILED, FOUND, counted, error_message, write_out
from amplint.examples.cases import Problem, cases
from amplint.examples.judged import fixed, misjudged, undocumented
from amplint.examples.running import is_run, misrun
from amplint.plugins import BUILT_IN, OWN, Pack, load_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.rule_base import Rule


@click.command("test-rules")
@click.argument("pack")
def command(pack: str) -> None:
    """Run the examples of the rule pack PACK, which is named as in the configuration: my_pack.

    An example is the `bad` or the `good` of a rule, or a file examples/CODE/bad_*.py or good_*.py in the folder of the
    package. Bad ones must be found exactly at the lines that end with `# expect`, and fixes must leave nothing that
    they could fix; good ones must be silent. With torch installed, each that has a function reproduce() runs in a
    process of its own: bad ones must fail, good and fixed ones must not. This imports the pack and runs its examples.

    \b
    Exit status: 0 all is as it should be, 1 something is not, 2 the pack cannot be had.
    """
    sys.exit(run(pack))


def run(pack: str) -> int:
    """Test, report, and say the exit status. Raises UsageError."""
    wanted = "" if pack == BUILT_IN else pack
    rules = [rule for rule in load_rules([Pack(pack)]) if rule.pack == wanted and rule not in OWN]
    if not rules:
        error_message(f"the rule pack {pack} has no rules")
        return FAILED
    problems, summary = _tested(rules, _folder(pack))
    write_out("".join(f"{problem}\n" for problem in problems))
    click.echo(f"{pack}: {summary}: {counted(len(problems), 'problem') if problems else 'all is well'}.", err=True)
    return FOUND if problems else CLEAN


def _folder(pack: str) -> Path | None:
    """Where the files of examples lie: beside the modules of a package, nowhere for a single module."""
    paths = getattr(import_module(pack), "__path__", None)
    return next((Path(path) / "examples" for path in paths), None) if paths is not None else None


def _tested(rules: Sequence[Rule], folder: Path | None) -> tuple[list[Problem], str]:
    """What is wrong, and what was looked at."""
    from amplint.report.progress import telling

    problems = [problem for rule in rules for problem in undocumented(rule)]
    found = cases(rules, folder, problems)
    has_torch = importlib.util.find_spec("torch") is not None
    ran = 0
    with telling() as show:
        for number, case in enumerate(found, 1):
            show(f"{case.where} ({number} of {len(found)})")
            wrong = list(misjudged(case, rules))
            problems += wrong
            cured = fixed(case, problems) if case.is_bad and not wrong else None
            if has_torch and is_run(case):
                problems += misrun(case, cured)
                ran += 1
    how = f"{ran} of them run" if has_torch else "none of them run, since torch is not installed"
    return problems, f"{counted(len(rules), 'rule')}, {counted(len(found), 'example')}, {how}"
