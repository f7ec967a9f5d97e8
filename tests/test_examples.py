"""Every rule's examples, in the rule and in files: bad ones are found where marked and fail in torch, good ones are
silent.

``# expect`` at the end of a line means the rule's own code, ``# expect AMP201`` (or several) the codes named. Every
error must be marked; warnings of other rules need not be.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from rule_examples import FOLDER, RULES, Case, every_bad, every_good, ids, parse

from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult, Severity
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, find_scenario
from amplint.rule_base import CODE, HEADINGS, Evidence, Example, Rule, documentation
from amplint.source import Source

BAD, GOOD = every_bad(), every_good()
RUNNING = [case for case in GOOD if "def reproduce():" in case.example.source]
FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, FutureWarning, DeprecationWarning)
_EXPECT = re.compile(r"#\s*expect(?:\s+(AMP\d{3}(?:,\s*AMP\d{3})*))?\s*$")


def options(example: Example, rules: tuple[Rule, ...] = RULES) -> Options:
    version = tuple(int(part) for part in (example.torch_version or "2.13").split("."))
    named = find_scenario(example.scenario) if example.scenario else None
    scenarios = tuple(dict.fromkeys((*DEFAULT_SCENARIOS, *((named,) if named else ()))))
    torch_version = (version[0], version[1])
    return Options(rules, scenarios, example.device, torch_version, pedantic=example.pedantic, each_place=True)


def check(source: Source, example: Example, *rules: Rule) -> FileResult:
    return check_file(source, options(example, rules or RULES))


def source_of(text: str, tmp_path: Path) -> Source:
    return Source(tmp_path / "example.py", text.encode())


def expected(rule: Rule, text: str) -> list[tuple[int, str]]:
    marks = []
    for row, line in enumerate(text.splitlines(), start=1):
        if found := _EXPECT.search(line):
            codes = found[1].replace(" ", "").split(",") if found[1] else [rule.code]
            marks.extend((row, code) for code in codes)
    return sorted(marks)


def reported(result: FileResult) -> list[tuple[int, str]]:
    assert not result.failures
    return sorted((finding.span.start.row, finding.code) for finding in result.findings)


def errors(result: FileResult) -> list[tuple[int, str]]:
    return sorted((f.span.start.row, f.code) for f in result.findings if f.severity is Severity.ERROR)


def reproduce(rule: Rule, text: str) -> None:
    """Run an example's ``reproduce()`` with torch's global state untouched; deprecations are errors where they are the
    rule's matter."""
    namespace: dict[str, Any] = {"__name__": "example"}
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        if rule.name == "deprecated-amp-api":
            warnings.filterwarnings("error", category=FutureWarning)
            warnings.filterwarnings("error", category=DeprecationWarning)
        torch.manual_seed(0)
        exec(compile(text, "example.py", "exec"), namespace)
        namespace["reproduce"]()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_documentation_is_whole(rule: Rule) -> None:
    text = documentation(rule)
    assert CODE.fullmatch(rule.code)
    positions = [text.find(f"{heading}\n{'-' * len(heading)}") for heading in HEADINGS]
    assert all(position > 0 for position in positions), dict(zip(HEADINGS, positions, strict=True))
    assert positions == sorted(positions)
    assert len(rule.bad) == len(rule.good) == 1
    assert rule.name == Path(rule.__module__.rsplit(".", 1)[-1]).name.split("_", 1)[1].replace("_", "-")


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_bad_example_is_found(case: Case, tmp_path: Path) -> None:
    rule, _, example = case
    result = check(source_of(example.source, tmp_path), example)
    wanted = expected(rule, example.source)
    assert any(code == rule.code for _, code in wanted)
    assert [mark for mark in reported(result) if mark[1] == rule.code or mark in wanted] == wanted
    assert [mark for mark in errors(result) if mark not in wanted] == []
    if example.scenario is not None:
        scenario = find_scenario(example.scenario)
        assert scenario is not None
        assert any(scenario.name in f.scenarios for f in result.findings if f.code == rule.code)


@pytest.mark.parametrize("case", GOOD, ids=ids(GOOD))
def test_good_example_is_silent(case: Case, tmp_path: Path) -> None:
    rule, _, example = case
    result = check(source_of(example.source, tmp_path), example)
    assert [mark for mark in reported(result) if mark[1] == rule.code] == []
    assert errors(result) == []


def run_emulated(example: Example, text: str) -> subprocess.CompletedProcess[str]:
    """Run an example's ``reproduce()`` in a process where the device's policy stands over the CPU's kernels."""
    program = f"from amplint.emulation import install\ninstall({example.device!r})\n{text}\nreproduce()\n"
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_bad_example_fails_in_torch(case: Case) -> None:
    rule, _, example = case
    if rule.evidence is Evidence.CITED:
        return
    if example.emulated:
        done = run_emulated(example, example.source)
        assert done.returncode != 0
        assert "RuntimeError" in done.stderr
        return
    with pytest.raises(FAILURES):
        reproduce(rule, example.source)


@pytest.mark.parametrize("case", RUNNING, ids=ids(RUNNING))
def test_good_example_runs(case: Case) -> None:
    reproduce(case.rule, case.example.source)


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_fix_cures_the_example(case: Case, tmp_path: Path) -> None:
    """The rule's own fixes, to a fixed point: nothing of this rule is left that has a fix, and the program runs."""
    rule, _, example = case
    source = source_of(example.source, tmp_path)
    before = check(source, example, rule)
    if not any(f.fix and f.fix.applicability is not Applicability.DISPLAY for f in before.findings):
        return
    outcome = fix_source(source, before, Applicability.UNSAFE, lambda changed: check(changed, example, rule))
    assert not outcome.problems
    assert outcome.source.data != source.data
    left = [f for f in outcome.result.findings if f.fix and f.fix.applicability is not Applicability.DISPLAY]
    assert left == []
    if outcome.result.findings or rule.evidence is Evidence.CITED:
        return
    if example.emulated:
        done = run_emulated(example, outcome.source.text)
        assert done.returncode == 0, done.stderr
    else:
        reproduce(rule, outcome.source.text)


def test_every_file_is_an_example_of_a_rule() -> None:
    """And called after what it shows, of which no two say the same."""
    found = {path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert found == {FOLDER / rule.code / f"{name}.py" for rule, name, _ in (*BAD, *GOOD) if "_" in name}
    assert all(re.fullmatch(r"(bad|good)(_[a-z0-9]+)*_?[a-z]+[a-z0-9]*(_[a-z0-9]+)*", path.stem) for path in found)
    texts = [example.source for _, _, example in (*BAD, *GOOD)]
    assert len(set(texts)) == len(texts)


def test_settings_of_an_example() -> None:
    text = "# scenario: fp16\n# device: cpu\n# torch-version: 2.3\n# emulated: yes\n# pedantic: yes\n\nx = 1\n"
    assert parse(text) == Example(text, "fp16", "cpu", "2.3", emulated=True, pedantic=True)
    assert parse("# scenario: bf16\n\n# Not a setting.\nx = 1\n").scenario == "bf16"
    assert parse("x = 1\n") == Example("x = 1\n")


@pytest.mark.parametrize(
    "text",
    [
        "# A comment.\n\nx = 1\n",
        "# scenario: fp16\nx = 1\n",
        "# scenario: fp16\n",
        "# scenario: float16\n\nx = 1\n",
        "# scenario:fp16\n\nx = 1\n",
        "# scenario: fp16 \n\nx = 1\n",
        "# scenario: fp16\n# scenario: fp16\n\nx = 1\n",
        "# device: cpu\n# scenario: fp16\n\nx = 1\n",
        "# device: cuda\n\nx = 1\n",
        "# torch-version: 2\n\nx = 1\n",
        "# pedantic: no\n\nx = 1\n",
        "# Scenario: fp16\n\nx = 1\n",
        "# severity: error\n\nx = 1\n",
    ],
)
def test_settings_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"setting|sets"):
        parse(text)


def test_codes_are_distinct() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_documentation_examples_are_python() -> None:
    for rule in RULES:
        for block in re.findall(r"```python\n(.*?)```", documentation(rule), flags=re.DOTALL):
            compile(f"def example():\n{textwrap.indent(block, '    ')}\n    ...", rule.code, "exec")


def test_messages_are_short(tmp_path: Path) -> None:
    """Most are read at a glance; the dtypes' origins and what to do are told by causes and fixes."""
    messages = [
        finding.message
        for case in BAD
        for finding in check(source_of(case.example.source, tmp_path), case.example, case.rule).findings
    ]
    long = [message for message in messages if len(message) > 120]
    assert len(long) <= 0.05 * len(messages), long
