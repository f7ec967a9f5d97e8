"""Fixes bring the imports that they need, take out those that they orphan, and keep to the names of the file."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from disguise import Change, aliased, by_name, disguised
from imported_names import imported, read, unbound
from rule_examples import Case, every_bad, ids

from amplint.engine import Options, check_file
from amplint.finding import Applicability, Edit, FileResult
from amplint.fix import fix_source
from amplint.fix.edits import apply_edits
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.orphans import without_orphans
from amplint.plugins import load_rules
from amplint.rule_base import Example
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from amplint.rule_base import Rule

RULES = tuple(load_rules())
CASES = [case for case in every_bad() if case.rule.fix is not None]


def fixed(rule: Rule, example: Example, text: str) -> tuple[list[str], str]:
    """The findings of a rule, and the source after all of its fixes."""
    major, minor = (example.torch_version or "2.13").split(".")
    options = Options((rule,), DEFAULT_SCENARIOS, example.device, torch_version=(int(major), int(minor)))

    def check(source: Source) -> FileResult:
        return check_file(source, options)

    source = Source(Path("/project/module.py"), text.encode())
    before = check(source)
    outcome = fix_source(source, before, Applicability.UNSAFE, check)
    assert not outcome.broken
    return [finding.code for finding in before.findings], outcome.source.text


@cache
def fixed_undisguised(case: Case) -> tuple[list[str], str]:
    """The same of an example as it is, beside each spelling."""
    return fixed(case.rule, case.example, case.example.source)


@pytest.mark.parametrize("spell", [aliased, by_name])
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_fixes_keep_to_the_names_of_the_file(case: Case, spell: Change) -> None:
    rule, example = case.rule, case.example
    plain, _ = fixed_undisguised(case)
    text = disguised(example.source, spell).text
    found, after = fixed(rule, example, text)
    assert found == plain
    assert unbound(after) <= unbound(text)
    used = read(text)
    assert {name for name, _ in imported(after) if name in used} <= read(after), after
    before = Counter(imported(text))
    assert all(count <= max(1, before[name]) for name, count in Counter(imported(after)).items()), after


ORPHANS = {
    "AMP304": (
        "from torch import sigmoid\nfrom torch.nn.functional import binary_cross_entropy\nimport torch\n\n\n"
        "def loss(x: torch.Tensor, y: torch.Tensor):\n"
        "    with torch.autocast('cuda'):\n        return binary_cross_entropy(sigmoid(x @ x), y)\n",
        {"torch"},
    ),
    "AMP602": (
        "import torch\nfrom torch import get_autocast_gpu_dtype\n\n\n"
        "def cast(x: torch.Tensor):\n    return x.to(get_autocast_gpu_dtype())\n",
        {"torch"},
    ),
    "AMP102": (
        "import torch\nfrom torch import float32, nn\n\n\nclass Block(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.proj = nn.Linear(4, 4)\n\n    def forward(self, x: torch.Tensor):\n"
        "        y = self.proj(x)\n        return torch.bmm(y.to(float32), y)\n",
        {"torch", "nn"},
    ),
}


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ("finfo", ""),
        ("finfo, finfo", ""),
        ("half, finfo", ""),
        ("finfo, half, arange", "from torch import arange\n"),
        ("arange, half, finfo", "from torch import arange\n"),
        ("half, arange, finfo", "from torch import arange\n"),
        ("arange, half, empty, finfo, ones", "from torch import arange, empty, ones\n"),
    ],
)
def test_imports_that_go_together(names: str, left: str) -> None:
    source = Source(Path("module.py"), f"from torch import {names}\nprint(finfo, half)\n".encode())
    use = Edit(Span(Location(2, 7), Location(2, 18)), "")
    assert apply_edits(source, [use, *without_orphans(source, [use])]).text == f"{left}print()\n"


@pytest.mark.parametrize("code", ORPHANS)
def test_what_a_fix_orphans_is_imported_no_more(code: str) -> None:
    text, left = ORPHANS[code]
    (rule,) = (rule for rule in RULES if rule.code == code)
    found, after = fixed(rule, Example(text, "autocast-fp16"), text)
    assert found
    assert {name for name, _ in imported(after)} == left


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"{ORPHANS['AMP602'][0]}\n__all__ = ['get_autocast_gpu_dtype']\n", "module.py"),
        (f"{ORPHANS['AMP602'][0]}\nagain = get_autocast_gpu_dtype\n", "module.py"),
        (ORPHANS["AMP602"][0], "__init__.py"),
    ],
)
def test_what_others_read_stays(text: str, path: str) -> None:
    source = Source(Path("/project", path), text.encode())
    rules = tuple(rule for rule in RULES if rule.code == "AMP602")

    def check(source: Source) -> FileResult:
        return check_file(source, Options(rules))

    after = fix_source(source, check(source), Applicability.UNSAFE, check).source.text
    assert "get_autocast_dtype(x.device.type)" in after
    assert "from torch import get_autocast_gpu_dtype\n" in after
