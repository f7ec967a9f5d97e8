"""Modules that are converted in place: what is told of them is what torch raises, with half weights and without."""

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

OPERANDS = ("AMP102", "AMP103", "AMP104", "AMP110", "AMP112")
RULES = tuple(rule for rule in load_rules() if rule.code in OPERANDS)

FILE = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.fc = nn.Linear(4, 4)
        self.both = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.register_buffer("table", torch.eye(4))
        self.part = Part()
{constructed}

{methods}
"""

FITTING = {
    "a layer": """
        def forward(self, x):
            self.fc.float()
            return self.fc(x.float())
    """,
    "layers inside another": """
        def forward(self, x):
            self.both.to(dtype=torch.float32)
            return self.both(x.float())
    """,
    "the module itself": """
        def forward(self, x):
            self.float()
            return self.fc(x.float())
    """,
    "a buffer of the module itself": """
        def forward(self, x):
            self.float()
            return torch.matmul(x.float(), self.table)
    """,
    "an object inside the module itself": """
        def forward(self, x):
            self.float()
            return self.part(x.float())
    """,
    "a variable": """
        def forward(self, x):
            layer = self.fc
            layer.float()
            return layer(x.float())
    """,
    "in a branch": """
        def forward(self, x, wide=True):
            if wide:
                self.fc.float()
                x = x.float()
            return self.fc(x)
    """,
    "by another method": """
        def widen(self):
            self.fc.float()

        def forward(self, x):
            self.widen()
            return self.fc(x.float())
    """,
}
RAISING = {
    "an operand of the model": """
        def forward(self, x):
            self.fc.float()
            return self.fc(self.inner(x))  # expect
    """,
    "another layer": """
        def forward(self, x):
            self.fc.float()
            return self.fc(x.float()), self.inner(x.float())  # expect
    """,
}


def text(methods: str, constructed: str = "") -> str:
    return FILE.format(
        constructed=textwrap.indent(constructed, " " * 8), methods=textwrap.indent(textwrap.dedent(methods), "    ")
    )


def rows(tmp_path: Path, code: str) -> list[int]:
    found = check_file(Source(tmp_path / "net.py", code.encode()), Options(RULES)).findings
    return [finding.span.start.row for finding in found if "fp16" in finding.scenarios]


def net(code: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), names)
    return names["Net"]()


@pytest.mark.parametrize("name", FITTING)
def test_what_torch_runs_is_not_told(tmp_path: Path, name: str) -> None:
    code = text(FITTING[name])
    assert net(code).half()(torch.ones(2, 4, dtype=torch.float16)) is not None
    assert rows(tmp_path, code) == []


@pytest.mark.parametrize("name", RAISING)
def test_what_torch_refuses_is_told(tmp_path: Path, name: str) -> None:
    code = text(RAISING[name])
    with pytest.raises(RuntimeError, match="same dtype"):
        net(code).half()(torch.ones(2, 4, dtype=torch.float16))
    assert rows(tmp_path, code) == [row for row, line in enumerate(code.splitlines(), 1) if "# expect" in line]


def test_a_constructor_converts_before_the_whole_model_is(tmp_path: Path) -> None:
    code = text("def forward(self, x):\n    return self.fc(x)\n", "self.fc.to(torch.bfloat16)\n")
    assert net(code).half()(torch.ones(2, 4, dtype=torch.float16)) is not None
    assert rows(tmp_path, code) == []


def test_a_part_that_a_constructor_converts_is_converted_again(tmp_path: Path) -> None:
    code = text("def forward(self, x):\n    return self.wide(x.float())\n", "self.wide = Part().float()\n")
    code = code.replace("return self.fc(x)\n", "return self.fc(x)  # expect\n", 1)
    with pytest.raises(RuntimeError, match="same dtype"):
        net(code).half()(torch.ones(2, 4, dtype=torch.float16))
    assert rows(tmp_path, code) == [row for row, line in enumerate(code.splitlines(), 1) if "# expect" in line]
    code = text("def forward(self, x):\n    return self.wide(x)\n", "self.wide = Part().float()\n")
    assert net(code).half()(torch.ones(2, 4, dtype=torch.float16)) is not None
    assert rows(tmp_path, code) == []


def test_a_model_converted_where_it_was_made(tmp_path: Path) -> None:
    code = text("def forward(self, x):\n    return self.fc(x)\n") + textwrap.dedent(
        """
        def run():
            model = Net()
            model.half()
            return model(torch.ones(2, 4).half()), model.part(torch.ones(2, 4).half())
        """
    )
    found = check_file(Source(tmp_path / "net.py", code.encode()), Options(RULES)).findings
    assert not found


STACK = """

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Part() for _ in range(2)])

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        ("Stack().float()", True),
        ("Stack().to('cpu').float()", True),
        ("nn.Sequential(Stack(), nn.ReLU()).float()", True),
        ("nn.Sequential(Stack(), nn.ReLU())", False),
    ],
)
def test_a_conversion_reaches_objects_in_lists(tmp_path: Path, made: str, fits: bool) -> None:
    code = text("def forward(self, x):\n    return self.wide(x.float())\n", f"self.wide = {made}\n") + STACK
    code = code.replace("return self.fc(x)\n", "return self.fc(x)  # expect\n", 1)
    torch.set_default_dtype(torch.bfloat16)
    try:
        model = net(code)
    finally:
        torch.set_default_dtype(torch.float32)
    if fits:
        assert model(torch.ones(2, 4)) is not None
    else:
        with pytest.raises(RuntimeError, match="same dtype"):
            model(torch.ones(2, 4))
    found = check_file(Source(tmp_path / "net.py", code.encode()), Options(RULES)).findings
    told = [f.span.start.row for f in found if "bf16-mixed-params" in f.scenarios]
    assert told == ([] if fits else [row for row, line in enumerate(code.splitlines(), 1) if "# expect" in line])


@pytest.mark.parametrize("converted", ["a.to(x.device)", "a.half()", "a.to(x.device).half()"])
def test_layers_that_hold_one_twice_are_followed_once(converted: str, tmp_path: Path) -> None:
    twice = "".join("    a = nn.Sequential(a, a)\n" for _ in range(60))
    path = tmp_path / "nets.py"
    path.write_text(
        f"{FILE}\n\ndef run(x):\n    a = nn.Sequential(nn.Linear(4, 4))\n{twice}    return {converted}(x)\n"
    )
    assert not check_file(path, Options(RULES)).failures
