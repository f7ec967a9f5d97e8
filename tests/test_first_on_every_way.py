"""What raises whichever way the program takes hides what stands behind all of them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import functools
import torch
from torch import nn
import torch.nn.functional as F

def kept(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return function(*args, **kwargs)
    return run

class Wide(nn.Linear):
    def forward(self, x):
        return super().forward(x.float())

class Wider(nn.Linear):
    def forward(self, x):
        return super().forward(torch.cat([x.float(), x.float()], -1))

class Plain(nn.Linear):
    pass

"""
NET = (
    HEAD
    + """\
class Net(nn.Module):
    {decorator}
    def __init__(self, mode="one"):
        super().__init__()
        self.mode = mode
        self.one = Wide(8, 8)
        self.two = Wider(16, 8)
        self.plain = Plain(8, 8)
        self.any = {anyone}
        self.layers = nn.ModuleList([{layers}])
        self.last = nn.Linear(8, 8)

    def forward(self, x):
{body}
        return self.last(torch.ones(8, 8))
"""
)
GIVEN: dict[str, str] = {"decorator": "", "anyone": "nn.Identity()", "layers": "Wide(8, 8)", "body": ""}
LAST = "torch.ones(8, 8)"


def found_in(tmp_path: Path, code: str) -> list[tuple[str, str]]:
    """Code and line of what is told of the half weights' scenarios or under autocast."""
    path = tmp_path / "net.py"
    findings = check_file(Source(path, code.encode()), Options(tuple(load_rules()))).findings
    return [(f.code, code.splitlines()[f.span.start.row - 1].strip()) for f in findings]


def net(**given: str) -> str:
    filled = {**GIVEN, **given}
    filled["body"] = "".join(f"        {line}\n" for line in filled["body"].splitlines())
    return NET.format(**filled)


def last_line(code: str, *given: Any) -> str:
    """The line of a network's ``forward``, of half weights, that raises."""
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises((RuntimeError, ValueError)) as caught:
        namespace["Net"](*given).half()(torch.ones(8, 8, dtype=torch.float16))
    rows = [f.lineno for f in traceback.extract_tb(caught.tb) if f.filename == "net.py" and f.name == "forward"]
    return code.splitlines()[(rows[0] or 0) - 1].strip()


WAYS = {
    "else": "if self.mode == 'one':\n    y = self.one(x)\nelse:\n    y = self.two(x)",
    "raise": "if self.mode == 'one':\n    y = self.one(x)\nelif self.mode == 'two':\n    y = self.two(x)\n"
    "else:\n    raise ValueError(self.mode)",
    "match": "match self.mode:\n    case 'one':\n        y = self.one(x)\n    case 'two':\n        y = self.two(x)\n"
    "    case _:\n        raise ValueError(self.mode)",
    "conditional": "y = self.one(x) if self.mode == 'one' else self.two(x)",
}
OPEN = {
    "one": "if self.mode == 'one':\n    y = self.one(x)",
    "plain": "if self.mode == 'one':\n    y = self.one(x)\nelse:\n    y = self.plain(x)",
    "case": "match self.mode:\n    case 'one':\n        y = self.one(x)\n    case 'two':\n        y = self.two(x)",
}


@pytest.mark.parametrize("body", WAYS.values(), ids=WAYS)
def test_what_raises_on_every_way_hides_what_follows(tmp_path: Path, body: str) -> None:
    code = net(body=body)
    assert not [line for _, line in found_in(tmp_path, code) if LAST in line]
    for mode in ("one", "two", "three"):
        assert LAST not in last_line(code, mode)


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_what_another_way_leads_to_is_told(tmp_path: Path, body: str) -> None:
    code = net(body=body)
    assert [line for _, line in found_in(tmp_path, code) if LAST in line]
    assert LAST in last_line(code, "three")


@pytest.mark.parametrize(
    ("anyone", "layers", "body", "told"),
    [
        ("Wide(8, 8) if mode == 'one' else Wider(16, 8)", "Wide(8, 8)", "y = self.any(x)", False),
        ("Wide(8, 8) if mode == 'one' else Plain(8, 8)", "Wide(8, 8)", "y = self.any(x)", True),
        ("nn.Identity()", "Wide(8, 8), Wider(16, 8)", "for layer in self.layers:\n    x = layer(x)", False),
        (
            "nn.Identity()",
            "*[Wide(8, 8) for _ in range(4)], Wider(16, 8)",
            "for f in self.layers:\n    x = f(x)",
            False,
        ),
    ],
)
def test_each_module_that_may_be_called_raises(tmp_path: Path, anyone: str, layers: str, body: str, told: bool) -> None:
    code = net(anyone=anyone, layers=layers, body=body)
    assert any(LAST in line for _, line in found_in(tmp_path, code)) == told
    assert (LAST in last_line(code, "three")) == told


@pytest.mark.parametrize("decorator", ["", "@kept", "@functools.wraps(object.__init__)", "@unknown.register"])
def test_a_constructor_runs_whatever_decorates_it(tmp_path: Path, decorator: str) -> None:
    for body, told in (("pass", True), ("y = self.one(x)", False)):
        code = "import unknown\n" + net(decorator=decorator, body=body)
        assert any(LAST in line for _, line in found_in(tmp_path, code)) == told


NUMBERS = (
    HEAD
    + """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, x):
        y = self.first(x)
        {first}
        z = F.pad(y, (1, 1), value=-1e30)
        return self.last(torch.ones(8, 8)), z
"""
)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("y = y.masked_fill(y > 0, -1e9)", False),
        ("y.fill_(-1e9)", False),
        ("m = y.new_full((8,), 1e24)", False),
        ("m = torch.full_like(y, fill_value=-1e5)", False),
        ("m = torch.full((8, 8), -1e9, dtype=y.dtype)", False),
        ("y = y.masked_fill(y > 0, -1e4)", True),
        ("m = torch.full((8, 8), -1e9, dtype=torch.float32)", True),
        ("m = y.float().masked_fill(y > 0, -1e9)", True),
    ],
)
def test_a_number_out_of_range_hides_what_follows(tmp_path: Path, first: str, told: bool) -> None:
    code = NUMBERS.replace("{first}", first)
    found = [(rule, line) for rule, line in found_in(tmp_path, code) if "-1e30" in line]
    assert bool(found) == told
    assert ("-1e30" in last_line(code)) == told


BANNED = (
    HEAD
    + """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x, target):
        y = self.first(x)
        {first}
        return F.binary_cross_entropy(torch.sigmoid(y), target)
"""
)


@pytest.mark.parametrize(
    ("first", "told"), [("pass", True), ("z = F.binary_cross_entropy(y, target)", False), ("z = y.mm(y)", True)]
)
def test_what_autocast_refuses_is_told_once_on_a_path(tmp_path: Path, first: str, told: bool) -> None:
    found = found_in(tmp_path, BANNED.replace("{first}", first))
    assert (("AMP304", "return F.binary_cross_entropy(torch.sigmoid(y), target)") in found) == told
    assert any(rule == "AMP304" for rule, _ in found)
