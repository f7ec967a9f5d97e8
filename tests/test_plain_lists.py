"""Layers in plain Python lists: what converts and moves a module does not reach them, as torch shows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code in ("AMP102", "AMP103", "AMP104"))
FILE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(me):
        super().__init__()
{made}
        me.table = nn.Linear(4, 4)

    def forward(me, x):
{used}
        return torch.mm(y, torch.ones(4, 4, device=x.device))
"""
LOOP = """
y = x
for layer in {name}:
    y = layer(y)
"""
PLAIN = {
    "a list": ("me.some = [nn.Linear(4, 4), nn.Linear(4, 4)]", LOOP.format(name="me.some")),
    "a list that grows": (
        "me.some = []\nfor _ in range(2):\n    me.some.append(nn.Linear(4, 4))",
        LOOP.format(name="me.some"),
    ),
    "a comprehension, by item": ("me.some = [nn.Linear(4, 4) for _ in range(2)]", "y = me.some[0](x)"),
    "a dict": ("me.some = {'a': nn.Linear(4, 4)}", "y = me.some['a'](x)"),
    "with an index": (
        "me.some = [nn.Linear(4, 4)]",
        "y = x\nfor i, layer in enumerate(me.some):\n    y = layer(y)",
    ),
}
REGISTERED = {
    "a ModuleList": ("me.some = nn.ModuleList([nn.Linear(4, 4)])", LOOP.format(name="me.some")),
    "a list given to a ModuleList": (
        "me.some = [nn.Linear(4, 4)]\nme.kept = nn.ModuleList(me.some)",
        LOOP.format(name="me.some"),
    ),
    "a list unpacked into a Sequential": (
        "me.some = [nn.Linear(4, 4)]\nme.kept = nn.Sequential(*me.some)",
        LOOP.format(name="me.some"),
    ),
    "a comprehension in a ModuleList": (
        "me.some = [nn.Linear(4, 4)]\nme.kept = nn.ModuleList([one for one in me.some])",
        LOOP.format(name="me.some"),
    ),
    "backwards in a ModuleList": (
        "me.some = [nn.Linear(4, 4)]\nme.kept = nn.ModuleList(reversed(me.some))",
        LOOP.format(name="me.some"),
    ),
    "one by one in a ModuleList": (
        "me.some = [nn.Linear(4, 4)]\nme.kept = nn.ModuleList()\nfor one in me.some:\n    me.kept.append(one)",
        LOOP.format(name="me.some"),
    ),
    "layers that are attributes too": (
        "me.one = nn.Linear(4, 4)\nme.some = [me.one]",
        LOOP.format(name="me.some"),
    ),
    "by add_module": (
        "me.some = []\nfor i in range(2):\n    one = nn.Linear(4, 4)\n"
        "    me.add_module(f'l{i}', one)\n    me.some.append(one)",
        LOOP.format(name="me.some"),
    ),
    "an item as an attribute": (
        "me.some = [nn.Linear(4, 4)]\nme.first = me.some[0]",
        LOOP.format(name="me.some"),
    ),
}


def text(made: str, used: str) -> str:
    return FILE.format(made=textwrap.indent(made, " " * 8), used=textwrap.indent(used, " " * 8))


def told(tmp_path: Path, code: str) -> list[int]:
    found = check_file(Source(tmp_path / "net.py", code.encode()), Options(RULES)).findings
    return [finding.span.start.row for finding in found if "fp16" in finding.scenarios]


def converted(code: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), names)
    return names["Net"]().half()


@pytest.mark.parametrize("name", PLAIN)
def test_what_only_a_list_holds_is_not_converted(tmp_path: Path, name: str) -> None:
    code = text(*PLAIN[name])
    net = converted(code)
    items = net.some.values() if isinstance(net.some, dict) else net.some
    assert {layer.weight.dtype for layer in items} == {torch.float32}
    with pytest.raises(RuntimeError, match="same dtype"):
        net(torch.ones(2, 4, dtype=torch.float16))
    assert told(tmp_path, code) == []


@pytest.mark.parametrize("name", REGISTERED)
def test_what_is_registered_as_well_is(tmp_path: Path, name: str) -> None:
    code = text(*REGISTERED[name])
    net = converted(code)
    assert {layer.weight.dtype for layer in net.some} == {torch.float16}
    with pytest.raises(RuntimeError, match="same dtype"):
        net(torch.ones(2, 4, dtype=torch.float16))
    assert told(tmp_path, code) == [code.splitlines().index(code.splitlines()[-1]) + 1]
