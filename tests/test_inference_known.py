"""What a program says of its own values: annotations, tests of types and dtypes, where parameters end up.

Each program runs in float32. With half weights torch raises in the line that is marked, or nowhere if none is.
"""

from __future__ import annotations

import textwrap
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.source import Source

HEADER = """\
from typing import Optional, Union

import torch
from torch import nn

"""

PROGRAMS = {
    "a cast of a parameter to what it has": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4), requires_grad=False).float()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(x * self.scale)
        """,
    "a cast of a buffer to what it has": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.ones(4))
                self.scale = self.scale.to(torch.float32)
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(x * self.scale)
        """,
    "a cast of a parameter to something else": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4, dtype=torch.float64), requires_grad=False).float()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(x * self.scale)  # fails
        """,
    "an embedding made of a table": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding.from_pretrained(torch.ones(5, 4), freeze=False)

            def forward(self, x: torch.Tensor):
                rows = self.table(torch.zeros(2, dtype=torch.long))
                return x @ rows.T + torch.ones(2, 2) @ rows[:, :2]  # fails
        """,
    "a list of layers of two kinds": """
        class Wide(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor, wide: bool):
                return self.linear(x)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), Wide(), nn.ReLU(), Wide()])

            def forward(self, x: torch.Tensor):
                x = x.float()
                for layer in self.layers:
                    if isinstance(layer, Wide):
                        x = layer(x, True)
                    else:
                        x = layer(x)  # fails
                return x
        """,
    "None, which no operation makes a tensor of": """
        class Model(nn.Module):
            def __init__(self, filtered=False):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.filtered = filtered

            def forward(self, x: torch.Tensor, weight=None):
                if self.filtered:
                    x = nn.functional.linear(x, torch.reshape(None, (4, 4)))
                return self.linear(x)
        """,
    "numbers that a condition chooses": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                signs = torch.where(torch.ones(2, 4) > 0, 1.0, -1.0)
                return self.linear(signs)  # fails
        """,
    "numbers that a condition without dimensions chooses": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(x * torch.where((x > 0).any(), 1.0, -1.0))
        """,
    "tensors without dimensions, of which a condition with some chooses": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                signs = torch.where(torch.ones(4) > 0, torch.tensor(1.0), torch.tensor(-1.0))
                return self.linear(self.linear.weight * signs)  # fails
        """,
    "a cast to the type of another tensor": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(torch.ones(2, 4).type(self.linear.weight.type()))
        """,
    "a cast to the type of a float32 tensor": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                wide = torch.ones(2, 4)
                return self.linear(x.type(wide.type()))  # fails
        """,
    "a cast to an argument that has dimensions": """
        class Model(nn.Module):
            def forward(self, x):
                return torch.ones(2, 4).to(x) @ torch.ones(4, 4)  # fails
        """,
    "a cast to an argument that is a tensor or a device": """
        class Model(nn.Module):
            def forward(self, x, device=None):
                return torch.ones(2, 4).to(x.device if device is None else device) @ torch.ones(4, 4)
        """,
    "a tensor of a type that is spelled": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor):
                return self.linear(x * torch.FloatTensor([1.0, 2.0, 3.0, 4.0]))  # fails
        """,
}


def program(name: str) -> str:
    return HEADER + textwrap.dedent(PROGRAMS[name])


def failing_rows(text: str) -> list[int]:
    return [row for row, line in enumerate(text.splitlines(), 1) if line.endswith("# fails")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_that_fails_is_found(name: str) -> None:
    text = program(name)
    source = Source(Path("/project/module.py"), text.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    found = [facts.span(c.node).start.row for c in conflicts(facts) if c.raises and "fp16" in c.scenarios]
    assert found == failing_rows(text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_raises_there(name: str) -> None:
    text = program(name)
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    names["Model"]()(torch.ones(2, 4))
    model, x = names["Model"]().half(), torch.ones(2, 4, dtype=torch.float16)
    if not failing_rows(text):
        model(x)
        return
    with pytest.raises(RuntimeError, match=r"dtype|type") as caught:
        model(x)
    rows = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == "program.py"]
    assert rows[-1] in failing_rows(text)


SCORED = """
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("mean", torch.ones(4{dtype}))

    def forward(self, x):
        return self.linear(x) * 2 if x.dtype == torch.float64 else x - self.mean


{caller}
"""
ALONE = "def score(x: torch.Tensor):\n    model = Score()\n    return model(x)"
WITHIN = """class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = Score()

    def forward(self, x: torch.Tensor):
        return self.score(x)
"""


@pytest.mark.parametrize(
    ("dtype", "caller", "lanes"),
    [("", ALONE, 0), (", dtype=torch.float32", ALONE, 1), ("", WITHIN, 0), (", dtype=torch.float32", WITHIN, 1)],
)
def test_the_buffers_of_a_model_that_is_not_converted_promote_nothing(dtype: str, caller: str, lanes: int) -> None:
    source = Source(Path("/project/module.py"), (HEADER + SCORED.format(dtype=dtype, caller=caller)).encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert [facts.names(p.lanes) for p in facts.promotions] == [("bf16-mixed-params",)] * lanes


CHOSEN = """
class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x.to(self.linear.weight.dtype))


class Model(nn.Module):
    def __init__(self, count: int, wide: bool, other: bool):
        super().__init__()
        self.count = count
        self.wide = wide
        self.other = other
        {made}

    def forward(self, x: torch.Tensor):
        if {test}:
            x = self.encoder(x.float())
        return x{after}
"""
CAST_IF = "if {}:\n            self.encoder = Cast()\n        else:\n            self.encoder = nn.Linear(4, 4)"
LATER = "\n\n    def replace(self):\n        self.encoder = nn.Linear(4, 4)"


@pytest.mark.parametrize(
    ("made", "test", "after", "raising"),
    [
        (CAST_IF.format("wide"), "self.wide", "", False),
        (CAST_IF.format("wide"), "not self.wide", "", True),
        (CAST_IF.format("wide"), "self.other", "", True),
        (CAST_IF.format("self.wide"), "self.wide", "", False),
        (CAST_IF.format("not wide"), "not self.wide", "", False),
        (CAST_IF.format("count > 0"), "self.count > 0", "", False),
        (CAST_IF.format("count > 0"), "self.count > 0 and len(x) > 2", "", False),
        (CAST_IF.format("count > 0"), "self.count > 0 or len(x) > 2", "", True),
        (CAST_IF.format("count > 0"), "self.count > 1", "", True),
        (CAST_IF.format("count == 0"), "self.count != 0", "", True),
        (CAST_IF.format("count != 0"), "self.count != 0", "", False),
        (CAST_IF.format("wide"), "self.wide", LATER, True),
        (
            CAST_IF.format("wide") + "\n        if other:\n            self.encoder = nn.Linear(4, 4)",
            "self.wide",
            "",
            True,
        ),
        (CAST_IF.format("wide") + "\n        self.encoder = nn.Linear(4, 4)", "self.wide", "", True),
        ("self.encoder = Cast() if wide else nn.Linear(4, 4)", "self.wide", "", False),
        ("self.encoder = Cast() if wide else nn.Linear(4, 4)", "not self.wide", "", True),
        (
            "self.encoder = Cast()\n        if wide:\n            self.encoder = nn.Linear(4, 4)",
            "not self.wide",
            "",
            False,
        ),
        ("self.encoder = Cast()\n        if wide:\n            self.encoder = nn.Linear(4, 4)", "self.wide", "", True),
        ("wide = other\n        " + CAST_IF.format("wide"), "self.wide", "", True),
    ],
)
def test_a_method_finds_what_the_constructor_chose(made: str, test: str, after: str, raising: bool) -> None:
    text = HEADER + CHOSEN.format(made=made, test=test, after=after)
    source = Source(Path("/project/module.py"), text.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert bool([c for c in conflicts(facts) if c.raises and "fp16" in c.scenarios]) == raising
