"""Every rule's examples, in the rule and in files: bad ones are found where marked and fail in torch, good ones are
silent. ``amplint test-rules`` does the same for a pack; here examples run in one process, but for emulated ones."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from rule_examples import FOLDER, PROBLEMS, RULES, Case, every_bad, every_good, ids

from amplint.engine import check_file
from amplint.examples.cases import Problem, parse
from amplint.examples.judged import fixed, misjudged, options, source_of, undocumented
from amplint.examples.running import FAILED, FAILURES, is_run, program, run_here, run_in_child
from amplint.rule_base import CODE, Evidence, Example, Rule, documentation

BAD, GOOD = every_bad(), every_good()
RUNNING = [case for case in GOOD if is_run(case)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_documentation_is_whole(rule: Rule) -> None:
    assert list(undocumented(rule)) == []
    assert CODE.fullmatch(rule.code)
    assert len(rule.bad) == len(rule.good) == 1
    assert rule.name == Path(rule.__module__.rsplit(".", 1)[-1]).name.split("_", 1)[1].replace("_", "-")


@pytest.mark.parametrize("case", [*BAD, *GOOD], ids=ids([*BAD, *GOOD]))
def test_example_is_found_where_marked(case: Case) -> None:
    assert list(misjudged(case, RULES)) == []


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_bad_example_fails_in_torch(case: Case) -> None:
    assert is_run(case) is (case.rule.evidence is Evidence.RUN)
    if not is_run(case):
        return
    job = program(case, case.example.source)
    if job.device is not None:
        status, said = run_in_child(job)
        assert status == FAILED
        assert said.startswith(("RuntimeError", "NotImplementedError"))
        return
    with pytest.raises(FAILURES):
        run_here(job)


@pytest.mark.parametrize("case", RUNNING, ids=ids(RUNNING))
def test_good_example_runs(case: Case) -> None:
    run_here(program(case, case.example.source))


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_fix_cures_the_example(case: Case) -> None:
    """The rule's own fixes, to a fixed point: nothing of this rule is left that has a fix, and the program runs."""
    problems: list[Problem] = []
    text = fixed(case, problems)
    assert problems == []
    if text is None:
        return
    job = program(case, text)
    if job.device is not None:
        assert run_in_child(job)[0] == 0
    else:
        run_here(job)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_fix_of_examples_indented_by_tabs(rule: Rule) -> None:
    problems: list[Problem] = []
    for case in (case for case in BAD if case.rule is rule):
        text = re.sub(r"^ +", lambda run: "\t" * (len(run[0]) // 4), case.example.source, flags=re.MULTILINE)
        fixed(case._replace(example=replace(case.example, source=text)), problems)
    assert problems == []


def test_every_file_is_an_example_of_a_rule() -> None:
    """And called after what it shows, of which no two say the same."""
    assert PROBLEMS == []
    names = [path.stem for path in FOLDER.rglob("*.py")]
    assert sorted(names) == sorted(case.name for case in (*BAD, *GOOD) if "_" in case.name)
    assert all(re.fullmatch(r"(bad|good)(_[a-z0-9]+)*_?[a-z]+[a-z0-9]*(_[a-z0-9]+)*", name) for name in names)
    texts = [case.example.source for case in (*BAD, *GOOD)]
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


def test_messages_are_short() -> None:
    """Most are read at a glance; the dtypes' origins and what to do are told by causes and fixes."""
    messages = [
        finding.message
        for case in BAD
        for finding in check_file(source_of(case.example), options(case.example, (case.rule,))).findings
    ]
    long = [message for message in messages if len(message) > 120]
    assert len(long) <= 0.05 * len(messages), long
