"""Rules on their own: facts that are only references (and regions given by hand), findings, fixes to a fixed point."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.finding import Applicability, FileResult, Finding
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS, Scenario
from amplint.infer.state.facts import FileFacts, Region
from amplint.source import Source
from amplint.visit import run_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amplint.rule_base import Rule

    Rules = Rule | Sequence[Rule]
    Regions = Callable[[Source], Iterable[Region]]

SCENARIOS = (CONTROL, *DEFAULT_SCENARIOS)


def facts_of(
    source: Source,
    *,
    torch_version: tuple[int, int] = (2, 13),
    device: str = "cuda",
    regions: tuple[Region, ...] = (),
    scenarios: tuple[Scenario, ...] = SCENARIOS,
) -> FileFacts:
    return FileFacts(source, source.path, device, torch_version, scenarios, regions, (), (), ())


def source_of(code: str, path: str = "/project/module.py") -> Source:
    return Source(Path(path), code.encode())


def findings(
    rules: Rules,
    code: str | Source,
    *,
    path: str = "/project/module.py",
    torch_version: tuple[int, int] = (2, 13),
    regions: Regions = lambda source: (),
) -> list[Finding]:
    """What the rules report, in order of position and code."""
    source = code if isinstance(code, Source) else source_of(code, path)
    facts = facts_of(source, torch_version=torch_version, regions=tuple(regions(source)))
    suspects = [(rule, suspect) for rule in _several(rules) for suspect in rule.suspects(facts)]
    return sorted(run_rules(source, facts, suspects), key=lambda finding: finding.sort_key)


def rows(
    rules: Rules,
    code: str,
    *,
    path: str = "/project/module.py",
    torch_version: tuple[int, int] = (2, 13),
    regions: Regions = lambda source: (),
) -> list[int]:
    """The rows of the findings."""
    found = findings(rules, code, path=path, torch_version=torch_version, regions=regions)
    return [finding.span.start.row for finding in found]


def expected_rows(code: str) -> list[int]:
    """The rows marked ``# expect``."""
    return [row for row, line in enumerate(code.splitlines(), start=1) if line.rstrip().endswith("# expect")]


def fixed(
    rules: Rules,
    code: str,
    *,
    unsafe: bool = False,
    path: str = "/project/module.py",
    regions: Regions = lambda source: (),
) -> str:
    """The code after ``--fix``, repeated until nothing changes."""

    def result(source: Source) -> FileResult:
        return FileResult(source.path, tuple(findings(rules, source, regions=regions)))

    source = source_of(code, path)
    highest = Applicability.UNSAFE if unsafe else Applicability.SAFE
    outcome = fix_source(source, result(source), highest, result)
    assert not outcome.broken, outcome.broken
    return outcome.source.text


def _several(rules: Rules) -> list[Rule]:
    return list(rules) if isinstance(rules, Iterable) else [rules]
