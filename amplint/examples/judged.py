"""Examples judged as ``check`` judges files: bad ones are found where marked, good ones are silent, fixes cure.

``# expect`` at the end of a line means the rule's own code, ``# expect MINE102`` (or several) the codes named. Every
error must be marked; warnings of other rules need not be.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.engine import Options, check_file
from amplint.examples.cases import Problem, place_of
from amplint.finding import Applicability, Severity
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, find_scenario
from amplint.rule_base import CODE, HEADINGS, Evidence, documentation
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.examples.cases import Case
    from amplint.finding import Finding
    from amplint.rule_base import Example, Rule

MEASURED = (2, 13)
"""The release of torch that an example is judged by where it names none: the one that the tables are measured on."""
PLACE = Path("/example/module.py")
"""Where every example is said to lie: a file that no project owns."""

_EXPECT = re.compile(rf"#\s*expect(?:\s+({CODE.pattern}(?:,\s*{CODE.pattern})*))?\s*$")


def options(example: Example, rules: Sequence[Rule]) -> Options:
    """What an example is judged by. Raises ValueError for settings that are none."""
    named = find_scenario(example.scenario) if example.scenario else None
    if example.scenario and named is None:
        raise ValueError(f"unknown scenario '{example.scenario}'")
    version = MEASURED
    if example.torch_version:
        major, minor = example.torch_version.split(".")
        version = int(major), int(minor)
    scenarios = tuple(dict.fromkeys((*DEFAULT_SCENARIOS, *((named,) if named else ()))))
    return Options(tuple(rules), scenarios, example.device, version, pedantic=example.pedantic, each_place=True)


def source_of(example: Example) -> Source:
    return Source(PLACE, example.source.encode())


def undocumented(rule: Rule) -> Iterator[Problem]:
    """The headings of a rule's documentation that are missing or out of order, and the examples that it lacks."""
    where, text = place_of(rule), documentation(rule)
    if not text.partition("\n")[0].strip() or "\n\n" not in text:
        yield Problem(where, None, "its documentation does not start with a sentence and an empty line")
    after = 0
    for heading in HEADINGS:
        position = text.find(f"{heading}\n{'-' * len(heading)}")
        if position < after:
            missing = position < 0
            yield Problem(where, None, f"its documentation {'lacks' if missing else 'has out of order'} '{heading}'")
        after = max(after, position)
    for name, examples in (("bad", rule.bad), ("good", rule.good)):
        if not examples:
            yield Problem(where, None, f"it has no {name} example of its own")


def misjudged(case: Case, rules: Sequence[Rule]) -> Iterator[Problem]:
    """What is not found where it is marked in an example, and what is found elsewhere."""
    rule, example = case.rule, case.example
    try:
        result = check_file(source_of(example), options(example, rules))
    except ValueError as error:
        yield Problem(case.where, None, str(error))
        return
    for failure in result.failures:
        yield Problem(case.where, None, failure)
    marked = Counter(_marks(rule, example.source))
    if case.is_bad and not any(code == rule.code for _, code in marked):
        yield Problem(case.where, None, "no line ends with `# expect`")
    if not case.is_bad and marked:
        yield Problem(case.where, None, "a line of a good example ends with `# expect`")
    found = Counter((finding.span.start.row, finding.code) for finding in result.findings)
    for row, code in sorted((marked - found).elements()):
        yield Problem(case.where, row, f"{code} is expected here and not found")
    for finding in result.findings:
        mark = finding.span.start.row, finding.code
        counts = finding.code == rule.code or finding.severity is Severity.ERROR
        if counts and found[mark] > marked[mark]:
            yield Problem(case.where, mark[0], f"{finding.code} is found here and not expected: {finding.message}")
    if case.is_bad and example.scenario is not None and not _holds_in(example.scenario, rule, result.findings):
        yield Problem(case.where, None, f"{rule.code} is not found in the scenario {example.scenario}")


def _marks(rule: Rule, text: str) -> Iterator[tuple[int, str]]:
    for row, line in enumerate(text.splitlines(), start=1):
        if found := _EXPECT.search(line):
            yield from ((row, code) for code in (found[1] or rule.code).replace(" ", "").split(","))


def _holds_in(name: str, rule: Rule, findings: Sequence[Finding]) -> bool:
    scenario = find_scenario(name)
    return scenario is not None and any(scenario.name in f.scenarios for f in findings if f.code == rule.code)


def fixed(case: Case, problems: list[Problem]) -> str | None:
    """A bad example after its rule's own fixes, where these leave nothing and the rule's evidence is a run.

    It is a problem if the fixes break the file, change nothing, or leave a finding that has a fix.
    """
    rule, source = case.rule, source_of(case.example)
    judged_by = options(case.example, (rule,))
    before = check_file(source, judged_by)
    if not any(_is_fixable(finding) for finding in before.findings):
        return None
    outcome = fix_source(source, before, Applicability.UNSAFE, lambda changed: check_file(changed, judged_by))
    problems.extend(Problem(case.where, None, f"a fix of {code} breaks the file") for code in outcome.broken)
    if outcome.source.data == source.data:
        problems.append(Problem(case.where, None, f"no fix of {rule.code} can be applied"))
        return None
    for finding in outcome.result.findings:
        if _is_fixable(finding):
            line = outcome.source.line(finding.span.start.row).strip()
            problems.append(Problem(case.where, None, f"{rule.code} and a fix are left after its fixes, at `{line}`"))
    shows = not outcome.result.findings and rule.evidence is Evidence.RUN
    return outcome.source.text if shows else None


def _is_fixable(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is not Applicability.DISPLAY
