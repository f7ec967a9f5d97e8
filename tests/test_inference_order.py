"""Callers speak for what they call: with what they pass, under the autocast that is around the call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.syntax.order import callers_first
from amplint.source import Source

if TYPE_CHECKING:
    from amplint.infer.state.facts import FileFacts

HEADER = """\
import torch
from torch import nn
"""


def facts(code: str) -> FileFacts:
    source = Source(Path("/project/module.py"), (HEADER + code).encode())
    return analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))


def rows(code: str) -> list[str]:
    """The lines of the code on which operands disagree."""
    found = facts(code)
    lines = (HEADER + code).splitlines()
    return sorted(lines[found.span(c.node).start.row - 1].strip() for c in conflicts(found))


def low_products(code: str) -> set[str]:
    """The scenarios in which a matrix product of the code is lowered by autocast."""
    found = facts(code)
    names = [scenario.name for scenario in found.scenarios]
    calls = [call for call in found.calls if call.name == "torch.linalg.qr"]
    assert calls
    return {name for call in calls for name, state in zip(names, call.autocast, strict=True) if state.on}


INNER = """
def _inner(points: torch.Tensor):
    return torch.linalg.qr(torch.matmul(points, points))
"""
OUTER = """
def outer(points: torch.Tensor):
    with torch.autocast(device_type="cuda", enabled=False):
        return _inner(points)
"""
METHODS = """
class Model(nn.Module):
    def last(self, points: torch.Tensor):
        return torch.linalg.qr(torch.matmul(points, points))

    def middle(self, points: torch.Tensor):
        with torch.autocast(device_type="cuda", enabled=False):
            return self.last(points)
"""


@pytest.mark.parametrize("code", [INNER + OUTER, OUTER + INNER, METHODS])
def test_what_runs_where_autocast_is_off_is_not_entered_under_autocast_before(code: str) -> None:
    assert low_products(code) == set()


def test_without_a_caller_autocast_is_around_it() -> None:
    assert low_products(INNER.replace("_inner", "inner")) != set()


PRIVATE = """
def _refined(points: torch.Tensor):
    product = torch.matmul(points, points)
    return torch.linalg.qr(product)
"""


@pytest.mark.parametrize(("more", "entered"), [("", False), ("STEPS = {'refine': _refined}\n", True)])
def test_what_other_files_call_runs_under_their_autocast(more: str, entered: bool) -> None:
    found = facts(PRIVATE + more)
    names = {found.scenarios[n].name for use in found.uses for n in range(len(found.scenarios)) if use.live >> n & 1}
    assert "fp16" in names
    assert ("autocast-fp16" in names) is entered


PARTS = """
class Relative(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 8)
        self.query = nn.Parameter(torch.FloatTensor(8, 8))
        self.key = nn.Parameter(torch.FloatTensor(8, 8))
        self.bias = nn.Parameter(torch.FloatTensor(8))

    def core(self, query, key):
        return torch.matmul(query + self.bias, key)

    def forward(self, ids: torch.LongTensor):
        hidden = self.embedding(ids)
        query = torch.matmul(hidden, self.query)
        key = torch.matmul(hidden, self.key)
        return self.core(query, key)
"""


def test_what_is_called_with_the_result_of_an_operation_that_raises_is_not_entered_again() -> None:
    found = rows(PARTS)
    assert "query = torch.matmul(hidden, self.query)" in found
    assert "return torch.matmul(query + self.bias, key)" not in found


def test_callers_come_before_what_they_call() -> None:
    calls: dict[str, list[str]] = {
        "leaf": [],
        "middle": ["leaf"],
        "top": ["middle", "leaf"],
        "other": [],
        "cycle": ["round"],
    }
    assert callers_first(calls) == ["top", "middle", "leaf", "other", "cycle"]


HELPER = """
def stretched(values: torch.Tensor):
    return torch.linalg.qr(values)


def whole(store):
    return stretched(store.find("values"))
"""


def test_calls_that_say_nothing_of_what_they_pass_leave_the_scenarios_inputs() -> None:
    found = facts(HELPER)
    assert any(use.op == "torch.linalg.qr" for use in found.uses)
    assert any(lane.mask for use in found.uses for operand in use.operands for lane in operand.value.dtypes)


PART = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def solved(self, places: torch.Tensor, keys: torch.Tensor):
        return torch.linalg.qr(places)

    def forward(self, hidden: torch.Tensor, store):
        {own}


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.part = Part()

    def forward(self, hidden: torch.Tensor, store):
        {other}
"""
CALL = 'return self.{}solved(store.find("places"), self.project(hidden))'


@pytest.mark.parametrize(
    ("own", "other", "entered"), [(CALL.format(""), "pass", False), ("pass", CALL.format("part."), True)]
)
def test_only_its_own_object_speaks_for_a_method(own: str, other: str, entered: bool) -> None:
    uses = [use for use in facts(PART.format(own=own, other=other)).uses if use.op == "torch.linalg.qr"]
    assert any(lane.mask for use in uses for operand in use.operands for lane in operand.value.dtypes) is entered


REGION = """
from contextlib import nullcontext

def _off(kind: str){promise}:
    if kind == "meta":
        return nullcontext()
    try:
        enabled = torch.is_autocast_enabled(kind)
    except RuntimeError:
        enabled = False
    if enabled:
        return torch.autocast(kind, enabled=False)
    return nullcontext()

def outer(points: torch.Tensor):
    with _off(points.device.type):
        return torch.linalg.qr(points)
"""


@pytest.mark.parametrize("promise", ["", " -> AbstractContextManager[Any]", ' -> "Region"', " -> tuple[Any, int]"])
def test_an_annotation_takes_away_nothing_that_is_known_of_what_a_function_returns(promise: str) -> None:
    assert low_products(REGION.format(promise=promise)) == set()


PARTLY_KNOWN = """
def _both(points: torch.Tensor){promise}:
    return points.float(), made_elsewhere()

def outer(points: torch.Tensor):
    wide, _ = _both(points)
    return wide @ points
"""


@pytest.mark.parametrize("promise", ["", " -> tuple[torch.Tensor, Any]", " -> Pair"])
def test_an_annotation_takes_away_no_known_item_of_a_tuple(promise: str) -> None:
    assert rows(PARTLY_KNOWN.format(promise=promise)) == ["return wide @ points"]


MASKED = """
class Masked(nn.Module):
    def forward(self, q: torch.Tensor):
        mask = {mask}
        scores = torch.bmm(q, q) * mask
        return torch.zeros_like(scores).index_add_(0, torch.arange(2), torch.softmax(torch.bmm(q, q), -1))
"""


@pytest.mark.parametrize(("mask", "reported"), [("None", 0), ("torch.ones(2, dtype=torch.bool)", 1)])
def test_arithmetic_with_none_gives_no_tensor(mask: str, reported: int) -> None:
    assert len(rows(MASKED.format(mask=mask))) == reported
