"""No finding rests on what an author chose and nothing reads: names, comments, docstrings, the file's name, the order
of definitions, the spelling of an import. Every example is checked as it is and in disguise: both say the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT
from disguise import (
    SAYS,
    aliased,
    by_name,
    disguised,
    loaded,
    moved,
    neutral,
    original,
    silent,
    talkative,
    under_other_names,
)
from rule_examples import RULES, Case, every_bad, every_good, ids

from amplint.engine import Options, check_file
from amplint.infer.entry.roots import roots
from amplint.infer.names.definitions import Class
from amplint.infer.names.namespace import Project
from amplint.rule_base import Example
from amplint.source import Source, Span

if TYPE_CHECKING:
    from disguise import Change, Program

CASES = [*every_bad(), *every_good()]
INCIDENTS = sorted((ROOT / "fixtures" / "incidents").glob("*/failing.py"))
PLACE = "/project/module.py"


@dataclass(frozen=True)
class Disguise:
    """Changes of a program, a comment on each of its lines, and the file that holds it then."""

    changes: tuple[Change, ...]
    comment: str = ""
    file: str = PLACE


DISGUISES = {
    "without a word": Disguise((silent, neutral), file="/project/part/v0.py"),
    "with misleading words": Disguise((talkative, loaded), SAYS, "/project/tests/test_fp16_quantize.py"),
    "torch as th": Disguise((aliased,)),
    "imported by name": Disguise((by_name,)),
    "imported under other names": Disguise((under_other_names,)),
    "the other way round": Disguise((moved,)),
}


def found(program: Program, example: Example, file: str) -> list[tuple[str, str, tuple[str, ...], int | None]]:
    """What is reported: the code, how sure, in which scenarios, and the mark of the node that it lies on."""
    major, minor = (example.torch_version or "2.13").split(".")
    options = Options(
        RULES, device=example.device, torch_version=(int(major), int(minor)), pedantic=True, each_place=True
    )
    marks = program.marks()
    reported = []
    for finding in check_file(Source(Path(file), program.text.encode()), options).findings:
        start = Span(finding.span.start, finding.span.start)
        mark = marks.get(finding.span, marks.get(start))
        reported.append((finding.code, finding.certainty.value, finding.scenarios, mark))
    return sorted(reported, key=str)


@cache
def found_undisguised(example: Example) -> list[tuple[str, str, tuple[str, ...], int | None]]:
    """What is reported of an example as it is: the same beside each disguise."""
    return found(original(example.source), example, PLACE)


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_disguise_changes_no_finding(case: Case, name: str) -> None:
    disguise = DISGUISES[name]
    program = disguised(case.example.source, *disguise.changes, comment=disguise.comment)
    assert found(program, case.example, disguise.file) == found_undisguised(case.example)


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("path", INCIDENTS, ids=[path.parent.name for path in INCIDENTS])
def test_a_disguise_changes_no_finding_in_a_module(path: Path, name: str) -> None:
    disguise, example = DISGUISES[name], Example(path.read_text())
    program = disguised(example.source, *disguise.changes, comment=disguise.comment)
    assert found(program, example, disguise.file) == found_undisguised(example)


KERNEL = """\
import torch
from . import {0}

class Sample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, offsets):
        ctx.save_for_backward(features, offsets)
        return {0}.sample(features, offsets)

    @staticmethod
    def backward(ctx, grad):
        return {0}.sample_backward(grad, *ctx.saved_tensors)
"""
STEP = """\
import torch

def step(model, x, {0}, optimizer: torch.optim.Adam):
    with torch.autocast("cuda"):
        loss = model(x)
        loss.backward({0})
    optimizer.step()
"""
HANDED_ON = """\
import torch

class Wrapped(torch.nn.Module):
    def forward(self, {0}):
        return torch.nn.functional.conv2d(torch.exp({0}[0]), torch.zeros(1, 1, 1, 1))
"""
CHOSEN = """\
import torch

class Router(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        best, {0} = self.gate(x).softmax(-1).topk(2)
        return best, {0}
"""


@pytest.mark.parametrize(
    ("program", "one", "other"),
    [
        (KERNEL, ("_C",), ("sampling",)),
        (STEP, ("grad",), ("given",)),
        (HANDED_ON, ("args",), ("inputs",)),
        (CHOSEN, ("_places",), ("places",)),
    ],
)
def test_a_name_by_habit_says_nothing(program: str, one: tuple[str, ...], other: tuple[str, ...]) -> None:
    texts = [program.format(*names) for names in (one, other)]
    first, second = (found(original(text), Example(text), PLACE) for text in texts)
    assert first == second


@pytest.mark.parametrize(("says", "root"), [('"""Not like Block(1)."""  # Block()\n', True), ("Block()\n", False)])
def test_what_other_files_say_of_a_class_constructs_nothing(tmp_path: Path, says: str, root: bool) -> None:
    for name in ("__init__", "one", "other"):
        (tmp_path / f"{name}.py").write_text(says)
    namespace = Project().begin(Source(tmp_path / "block.py", b"class Block: ..."))
    (node,) = namespace.tree.body
    assert isinstance(node, ast.ClassDef)
    block = Class(node, namespace, node.name, ())
    assert [*roots(namespace, [block])] == [block] * root


def test_disguises_change_what_they_are_about() -> None:
    text = 'import torch\n\n\ndef mean(values):  # of all\n    """Their mean."""\n    return torch.sum(values) / 2\n'
    assert disguised(text, silent, neutral).text == "import torch\n\ndef v_0(v_1):\n    return torch.sum(v_1) / 2"
    assert (
        disguised(text, silent, aliased).text
        == "import torch as th\n\ndef mean(values):\n    return th.sum(values) / 2"
    )
    named = disguised(text, silent, by_name).text
    assert named == "from torch import sum as sum_\nimport torch\n\ndef mean(values):\n    return sum_(values) / 2"
    spoken = disguised(text, talkative, loaded, comment=SAYS).text.splitlines()
    assert all(line.endswith(SAYS) for line in spoken)
    assert sum(SAYS in line.partition("#")[0] for line in spoken) == 1
