"""What README.md says is what the program does. The message of a failure is the text that belongs there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import ROOT, amplint

from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.plugins import load_rules

if TYPE_CHECKING:
    import pytest

README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
EXAMPLE = "fixtures/incidents/lookup_free_quantizer/failing.py"


def commands() -> list[str]:
    """The two marked commands: what installs and checks, what installs and tests."""
    return [line for line in README.splitlines() if line.startswith("python -m pip install ")]


def block(language: str, after: str) -> str:
    match = re.search(re.escape(after) + rf".*?\n```{language}\n(.*?)```", README, re.DOTALL)
    assert match is not None
    return match[1]


def table(heading: str) -> str:
    lines = README[README.index(heading) :].splitlines(keepends=True)
    rows = lines[2:]
    return "".join(rows[: next(i for i, row in enumerate(rows) if not row.startswith("|"))])


def test_there_are_two_commands_and_ci_runs_the_second() -> None:
    check, test = commands()
    assert check.endswith(" && amplint check --exit-zero fixtures/incidents/")
    assert test.endswith(" && python -m pytest -n auto")
    assert CI.count(test) == 1


def test_first_command_finds_the_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = commands()[0].split(" && amplint ")[1].split()
    done = amplint(*arguments)
    assert done.status == 0
    shown = {Path(name).parent.name for name in re.findall(r"--> (\S+failing\.py):", done.stdout)}
    assert shown == {folder.name for folder in (ROOT / "fixtures" / "incidents").iterdir() if folder.is_dir()}


def test_verdicts_are_the_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command = re.search(r"<!-- output of: (amplint verify .*?) -->", README)
    assert command is not None
    done = amplint(*command[1].split()[1:])
    assert block("text", command[0]) == done.stdout.rstrip("\n") + "\n"


def test_example_is_the_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = amplint("check", EXAMPLE)
    assert block("text", f"<!-- output of: amplint check {EXAMPLE} -->") == done.stdout.rstrip("\n") + "\n"


def test_json_is_the_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (finding, *_) = json.loads(amplint("check", "--output-format", "json", EXAMPLE).stdout)
    shown = json.loads(block("json", f"<!-- output of: amplint check --output-format json {EXAMPLE}"))
    for place in (finding, *finding["causes"]):
        place["filename"] = "/abs/" + Path(place["filename"]).name
    del finding["causes"][1:]
    assert shown == [finding]


def test_rules_are_all_listed() -> None:
    cells = [
        (rule.code, rule.name, rule.summary, rule.severity.value, rule.fix.value if rule.fix else "none")
        for rule in load_rules()
        if not rule.code.startswith("AMP9")
    ]
    rows = "".join(f"| {' | '.join(row)} |\n" for row in cells)
    assert table("| code | name | what | severity | fix |") == rows


def test_scenarios_are_all_listed() -> None:
    rows = "".join(
        f"| `{s.name}`{f' (`{s.alias}`)' if s.alias else ''} | {s.parameters} | {s.buffers} | {s.inputs} | "
        f"{s.autocast or 'off'} | {'yes' if s.default else 'no'} |\n"
        for s in SCENARIOS
    )
    assert table("| name | parameters | buffers | float inputs | autocast | by default |") == rows
