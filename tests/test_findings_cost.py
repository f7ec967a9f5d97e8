"""What findings cost grows with their number, not with its square: counted in calls, not in seconds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import findings_cost

FEW, TIMES = 30, 5
RULES = load_rules()


def counted(source: Source, options: Options) -> tuple[FileResult, int]:
    """What a check gives, and how many calls of Python functions and steps of generators it took."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        result = check_file(source, options)
    finally:
        sys.setprofile(None)
    return result, calls


@pytest.mark.parametrize("kind", findings_cost.KINDS)
def test_a_check_takes_as_much_for_each_finding(kind: str, tmp_path: Path) -> None:
    options = Options(RULES, DEFAULT_SCENARIOS)
    check_file(Source(tmp_path / "first.py", findings_cost.program(kind, 1).encode()), options)
    few, little = counted(Source(tmp_path / "few.py", findings_cost.program(kind, FEW).encode()), options)
    many, much = counted(Source(tmp_path / "many.py", findings_cost.program(kind, FEW * TIMES).encode()), options)
    assert len(few.findings) >= FEW - 1
    assert len(many.findings) >= (len(few.findings) - 1) * TIMES
    assert much < little * TIMES * 1.2


def test_so_does_fixing(tmp_path: Path) -> None:
    options = Options(RULES, DEFAULT_SCENARIOS, fix=Applicability.UNSAFE, write=False)
    check_file(Source(tmp_path / "first.py", findings_cost.program("scopes", 1).encode()), options)
    few, little = counted(Source(tmp_path / "few.py", findings_cost.program("scopes", FEW).encode()), options)
    many, much = counted(Source(tmp_path / "many.py", findings_cost.program("scopes", FEW * TIMES).encode()), options)
    assert many.fixed == few.fixed * TIMES > 0
    assert much < little * TIMES * 1.2


def made_inside(callers: int) -> bytes:
    """A function that makes an object and adds to what that holds, and so many others that call it."""
    made = ["    kept, item = Kept(), {'at': x}", "    kept.held.append(item)", "    item['late'] = len(kept.held)"]
    made += ["    x = x * 2 + len(kept.held)"] * 100
    lines = ["import torch", "class Kept:", "    def __init__(self):", "        self.held = []"]
    lines += ["def keep(x: torch.Tensor):", *made, "    return x"]
    lines += [line for n in range(callers) for line in (f"def call{n}():", "    return keep(torch.ones(3))")]
    return "\n".join(lines).encode()


def test_a_call_that_makes_its_own_objects_is_followed_once(tmp_path: Path) -> None:
    options = Options(RULES, DEFAULT_SCENARIOS)
    check_file(Source(tmp_path / "first.py", made_inside(1)), options)
    _, little = counted(Source(tmp_path / "one.py", made_inside(1)), options)
    _, much = counted(Source(tmp_path / "many.py", made_inside(30)), options)
    assert much < little * 3
