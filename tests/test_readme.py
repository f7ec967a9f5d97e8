"""The two commands of README.md. ``test_docs_shown.py`` holds what it shows, as on the other pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import ROOT, amplint

if TYPE_CHECKING:
    import pytest

README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The two marked commands: what installs and checks, what installs and tests."""
    return [line for line in README.splitlines() if line.startswith("python -m pip install ")]


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
