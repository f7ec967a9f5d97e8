"""benchmarks/growth.py: what it checks, and what it says of a few."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import growth

from amplint import check_paths

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_file_has_a_finding(tmp_path: Path) -> None:
    found = list(check_paths([growth.made(tmp_path, growth.FILES, 5)], isolated=True))
    told = [finding.filename.name for finding in found if finding.code == "AMP601"]
    assert sorted(told) == [f"part_{number}.py" for number in range(5)]


def test_a_cost_that_grows_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(growth, "seconds", lambda target: 1.0 + 0.001 * int(target.name.split("_")[1]) ** 2)
    monkeypatch.setattr(sys, "argv", ["growth.py", "--counts", "11", "101", "--kind", "masks"])
    assert growth.main() == 1
    assert capsys.readouterr().out == "masks {'of 11': 12.0, 'of 101': 102.0, 'times': 8.5}\n"
