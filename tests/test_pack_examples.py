"""``amplint test-rules`` on a pack whose examples are wrong: what is said, and where."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = ROOT / "tests" / "packs" / "house" / "house_rules"
RULE = "house101_float16_cast.py"
BAD = "examples/HOUSE101/bad_product_of_lengths.py"
GOOD = "examples/HOUSE101/good_bfloat16_throughout.py"
IN_RULE = "house_rules.house101_float16_cast.Float16Cast"


@pytest.fixture
def house(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Change a file of the pack, and say what its test prints; no example runs."""
    monkeypatch.syspath_prepend(project)
    monkeypatch.setattr("amplint.cli.test_rules.is_run", lambda case: False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two changes in a second may leave a file as long as it was
    shutil.copytree(SOURCE, project / "house_rules", ignore=shutil.ignore_patterns("__pycache__"))

    def changed(name: str, old: str, new: str) -> list[str]:
        for module in [name for name in sys.modules if name.partition(".")[0] == "house_rules"]:
            monkeypatch.delitem(sys.modules, module)
        path = project / "house_rules" / name
        text = path.read_text() if path.exists() else ""
        assert old in text
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text.replace(old, new) if old else new)
        done = amplint("test-rules", "house_rules")
        lines = done.stdout.splitlines()
        assert done.status == (1 if lines else 0), done.stderr
        return lines

    return changed


def test_marks_are_where_findings_are(house: Callable[..., list[str]]) -> None:
    found = "is found here and not expected: this is cast to float16, which ends at 65504"
    assert house(BAD, "  # expect HOUSE101, HOUSE101", "  # expect") == [
        f"house_rules/{BAD}:7: HOUSE101 {found}",
        f"house_rules/{BAD}:7: HOUSE101 {found}",
    ]
    assert house(BAD, "  # expect", "") == [
        f"house_rules/{BAD}: no line ends with `# expect`",
        f"house_rules/{BAD}:7: HOUSE101 {found}",
        f"house_rules/{BAD}:7: HOUSE101 {found}",
    ]
    assert house(BAD, ".half()", ".half()  # expect OTHER101")[:1]


def test_a_mark_without_a_finding(house: Callable[..., list[str]]) -> None:
    assert house(BAD, "    return query", "    print(query)  # expect\n    return query") == [
        f"house_rules/{BAD}:8: HOUSE101 is expected here and not found"
    ]


def test_a_good_example_is_silent(house: Callable[..., list[str]]) -> None:
    assert house(GOOD, "key.bfloat16()", "key.half()") == [
        f"house_rules/{GOOD}:5: HOUSE101 is found here and not expected: this is cast to float16, which ends at 65504"
    ]


def test_a_page_has_its_headings_and_examples(house: Callable[..., list[str]]) -> None:
    lines = house(RULE, "How it shows\n    ------------", "How it looks\n    ------------")
    assert lines == [f"{IN_RULE}: its documentation lacks 'How it shows'"]
    assert house(RULE, "    good = (", "    fine = (") == [*lines, f"{IN_RULE}: it has no good example of its own"]


def test_fixes_leave_nothing(house: Callable[..., list[str]]) -> None:
    assert house(RULE, '.bfloat16()"\n        fix', '.half()"\n        fix') == [
        f"{IN_RULE}.bad: no fix of HOUSE101 can be applied",
        f"house_rules/{BAD}: no fix of HOUSE101 can be applied",
    ]


def test_files_are_examples(house: Callable[..., list[str]]) -> None:
    assert house("examples/HOUSE102/bad_x.py", "", "x = 1\n") == [
        "house_rules/examples/HOUSE102/bad_x.py: is not an example: examples are files CODE/bad_*.py and CODE/good_*.py"
    ]
    assert house(GOOD, "import torch", "# scenario: fp61\n\nimport torch")[:1] == [
        f"house_rules/{GOOD}: not a setting of an example: # scenario: fp61"
    ]


def test_what_runs_otherwise_than_it_should(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a process of its own: a bad one that does not fail, one that fails otherwise, a good one that fails."""
    monkeypatch.syspath_prepend(project)
    shutil.copytree(SOURCE, project / "house_rules", ignore=shutil.ignore_patterns("__pycache__"))
    for module in [name for name in sys.modules if name.partition(".")[0] == "house_rules"]:
        monkeypatch.delitem(sys.modules, module)
    for name, old, new in (
        (RULE, "    assert energy", "    assert not energy"),
        (BAD, "    assert", "    import nowhere\n    assert"),
    ):
        path = project / "house_rules" / name
        path.write_text(path.read_text().replace(old, new, 1))
    path = project / "house_rules" / GOOD
    path.write_text(path.read_text().replace(".isfinite()", ".isnan()"))
    done = amplint("test-rules", "house_rules")
    assert done.status == 1
    assert done.stdout.splitlines() == [
        f"{IN_RULE}.bad: reproduce() does not fail",
        f"{IN_RULE}.bad: reproduce() fails after the fixes: AssertionError:",
        f"house_rules/{BAD}: reproduce() fails in another way than a hazard does: "
        "ModuleNotFoundError: No module named 'nowhere'",
        f"house_rules/{BAD}: reproduce() fails after the fixes: ModuleNotFoundError: No module named 'nowhere'",
        f"house_rules/{GOOD}: reproduce() fails: AssertionError:",
    ]
