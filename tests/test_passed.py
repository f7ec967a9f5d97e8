"""A line that needs an optional argument which every call in the project leaves out is merely possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

SCORES = """
import torch
from torch import nn

def exists(x):
    return x is not None

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x, mask=None, *, causal=False):
        scores = self.query(x)
        BODY
        return scores
"""
FILL = "scores = scores.masked_fill(x > 0, -1e9)"
MASKED = f"if mask is not None:\n            {FILL}"
MODEL = """
import package.scores
from torch import nn
from .scores import Scores

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = MADE

    def forward(self, PARAMETERS):
        CALL
"""


def model(call: str, made: str = "Scores()", parameters: str = "x, mask") -> dict[str, str]:
    return {"model.py": MODEL.replace("CALL", call).replace("MADE", made).replace("PARAMETERS", parameters)}


def doubts(folder: Path, files: dict[str, str], body: str = MASKED, code: str = "AMP301") -> list[str]:
    package = folder / "package"
    package.mkdir()
    for name, text in {"__init__.py": "", "scores.py": SCORES.replace("BODY", body), **files}.items():
        (package / name).write_text(text)
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=[code])
    found = [f for f in check_file(package / "scores.py", options).findings if f.code == code]
    assert len(found) == 1
    return [held.doubt.name for held in found[0].doubts]


def is_doubted(folder: Path, files: dict[str, str], body: str = MASKED) -> bool:
    return "not-passed" in doubts(folder, files, body)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("return self.scores(x)", True),
        ("return self.scores(x, None)", True),
        ("return self.scores(x, mask=None)", True),
        ("return self.scores.forward(x)", True),
        ("return self.scores(x, causal=True)", True),
        ("return self.scores(x, mask)", False),
        ("return self.scores(x, mask=mask)", False),
        ("return self.scores(x, x > 0)", False),
        ("return self.scores(x), self.scores(x, mask)", False),
        ("return self.scores(*x)", False),
        ("return self.scores(x, **mask)", False),
        ("return mask(self.scores, x)", False),
        ("return self.scores", False),
        ("return x", False),
        ("scores = self.scores\n        return scores(x)", True),
        ("scores = self.scores\n        return scores(x, mask)", False),
        ("return self.scores(x) if self.scores is not None else x", True),
    ],
)
def test_what_the_one_who_makes_it_passes(call: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, model(call)) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("return Scores()(x)", True),
        ("scores = Scores()\n        return scores(x)", True),
        ("return Scores()(x, mask)", False),
        ("return mask(Scores(), x)", False),
        ("return Scores()", False),
    ],
)
def test_what_a_method_makes_for_itself(call: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, model(call, made="nn.Identity()")) is expected


@pytest.mark.parametrize(
    ("program", "more", "expected"),
    [
        ("scores = Scores()\n    print(scores(torch.ones(4, 4)))", "", True),
        ("print(Scores()(torch.ones(4, 4), mask=None))", "", True),
        ("scores = Scores()\n    scores(torch.ones(4, 4), torch.ones(4))", "", False),
        ("scores = Scores()\n    train(scores)", "", False),
        ("scores = Scores()\n    train()", "def train():\n    scores(torch.ones(4, 4), torch.ones(4))\n", False),
        ("scores = Scores()\n    scores(torch.ones(4))", "def train(scores=None):\n    return scores\n", True),
    ],
)
def test_what_the_file_itself_does_as_a_program(program: str, more: str, expected: bool, tmp_path: Path) -> None:
    file = f'{SCORES.replace("BODY", MASKED)}\n{more}\nif __name__ == "__main__":\n    {program}\n'
    assert is_doubted(tmp_path, {**model("return self.scores(x)"), "scores.py": file}) is expected


@pytest.mark.parametrize(
    ("made", "call", "expected"),
    [
        ("nn.ModuleList([Scores() for _ in range(2)])", "for scores in self.scores:\n            x = scores(x)", True),
        (
            "nn.ModuleList([Scores(), Scores()])",
            "for i, scores in enumerate(self.scores):\n            x = scores(x)",
            True,
        ),
        ("nn.ModuleList([Scores(), Scores()])", "return self.scores[0](x)", True),
        ("nn.ModuleList([Scores(), Scores()])", "return self.scores[0](x, mask)", False),
        ("nn.ModuleList([Scores(), Scores()])", "for one in self.scores:\n            x = one(x, mask)", False),
        ("nn.ModuleList([Scores(), Scores()])", "for one in self.scores:\n            x = mask(one, x)", False),
        ("nn.ModuleList([Scores(), Scores()])", "return [one(x) for one in self.scores]", True),
        ("nn.Sequential(Scores(), Scores())", "return self.scores(x)", True),
        ("mask or Scores()", "return self.scores(x)", True),
        ("package.scores.Scores()", "return self.scores(x)", True),
        ("package.scores.Scores()", "return self.scores(x, mask)", False),
        ("Scores", "return self.scores()(x)", False),
    ],
)
def test_what_is_made_in_a_list(made: str, call: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, model(call, made)) is expected


OUTER = """
from torch import nn
from .model import Model

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, x, mask):
        return CALL
"""


@pytest.mark.parametrize(
    ("parameters", "call", "outer", "expected"),
    [
        ("x, mask=None", "return self.scores(x, mask)", None, False),
        ("x, mask=None", "return self.scores(x, mask)", "self.model(x)", True),
        ("x, mask=None", "return self.scores(x, mask)", "self.model(x, mask)", False),
        ("x, mask=None", "mask = x > 0\n        return self.scores(x, mask)", "self.model(x)", False),
        (
            "x, mask=None",
            "if mask is not None:\n            mask = mask[0]\n        return self.scores(x, mask)",
            "self.model(x)",
            True,
        ),
        (
            "x, mask=None",
            "if mask is None:\n            mask = x > 0\n        return self.scores(x, mask)",
            "self.model(x)",
            False,
        ),
        ("x, mask=True", "return self.scores(x, mask)", "self.model(x)", False),
        ("x, other=None", "return self.scores(x, other)", "self.model(x)", True),
    ],
)
def test_what_hands_on_its_own_optional_parameter(
    parameters: str, call: str, outer: str | None, expected: bool, tmp_path: Path
) -> None:
    files = model(call, parameters=parameters) | ({"outer.py": OUTER.replace("CALL", outer)} if outer else {})
    assert is_doubted(tmp_path, files) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (MASKED, True),
        (f"if mask is None:\n            return scores\n        {FILL}", True),
        (f"if mask is not None and x.dim() > 2:\n            {FILL}", True),
        (f"if causal:\n            {FILL}", True),
        (f"if causal is True:\n            {FILL}", True),
        (f"if mask is not None:\n            mask = mask[None]\n            {FILL}", True),
        (f"if mask is not None or x.dim() > 2:\n            {FILL}", False),
        (f"if not causal:\n            {FILL}", False),
        (f"if mask is None:\n            mask = x > 0\n        if mask is not None:\n            {FILL}", False),
        (f"mask = mask or x\n        if mask is not None:\n            {FILL}", False),
        (FILL, False),
    ],
)
def test_the_lines_that_need_the_argument(body: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, model("return self.scores(x)"), body) is expected


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"__init__.py": "from .scores import Scores\n"},
        {"__init__.py": "from .scores import *\n"},
        {"more.py": "from .scores import Scores\n\nclass More(Scores):\n    pass\n"},
        {"more.py": "from .scores import Scores\n\nTABLE = {'scores': Scores}\n"},
        {"more.py": "from .scores import Scores\n\ndef make():\n    return Scores()\n"},
        {"more.py": "from .scores import Scores\n\ndef run(x, mask):\n    return Scores()(x, mask)\n"},
        {"more.py": "from .scores import Scores\n\nscores = Scores()\n"},
    ],
)
def test_what_others_may_call_is_not_doubted(files: dict[str, str], tmp_path: Path) -> None:
    used = model("return self.scores(x)") if files else {}
    assert not is_doubted(tmp_path, used | files)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def run(x):\n    return Scores()(x)\n", True),
        ("def run(x):\n    scores = Scores()\n    return scores(x)\n", True),
        ("def run(x, mask):\n    scores = Scores()\n    return scores(x, mask)\n", False),
        ("def run(x):\n    scores = Scores()\n    return scores\n", False),
    ],
)
def test_what_a_function_makes_and_calls(code: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, {"run.py": "from .scores import Scores\n\n" + code}) is expected


FUNCTION = """
import torch

def attend(query, key, mask=None):
    scores = torch.matmul(query, key)
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    return scores
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from .scores import attend\n\ndef use(x):\n    return attend(x, x)\n", True),
        ("from .scores import attend\n\ndef use(x):\n    return attend(x, x, mask=None)\n", True),
        ("from .scores import attend as a\n\ndef use(x):\n    return a(x, x)\n", True),
        ("from .scores import attend as a\n\ndef use(x):\n    return a(x, x, x)\n", False),
        ("from . import scores\n\ndef use(x):\n    return scores.attend(x, x)\n", True),
        ("from . import scores\n\ndef use(x):\n    return scores.attend(x, x, x)\n", False),
        ("from .scores import attend\n\nFUNCTIONS = [attend]\n", False),
        ("from .scores import attend\n\ndef use(x, run):\n    return run(attend, x)\n", False),
    ],
)
def test_a_function(code: str, expected: bool, tmp_path: Path) -> None:
    assert is_doubted(tmp_path, {"scores.py": FUNCTION, "use.py": code}) is expected


GRID = """
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self, grid=False):
        super().__init__()
        self.grid = grid
        self.query = nn.Linear(4, 4)

    def positions(self):
        return torch.linspace(0, 1, 4, dtype=torch.float32, device="cuda")

    def forward(self, x):
        x = self.query(x)
        if self.grid:
            x = x + self.positions()
        CALL
        return self.query(x)
"""


@pytest.mark.parametrize(
    ("call", "made", "ask", "expected"),
    [
        ("pass", "Scores(grid=0)", "self", ["not-passed"]),
        ("pass", "Scores()", "self", ["not-passed"]),
        ("pass", "Scores()", "self.other", ["not-passed"]),
        ("pass", "Scores(grid=1)", "self", []),
        ("print(self.positions())", "Scores()", "self", ["not-passed"]),
        ("x = x + self.positions()", "Scores()", "self", []),
    ],
)
def test_what_is_computed_only_there_is_met_nowhere(
    tmp_path: Path, call: str, made: str, ask: str, expected: list[str]
) -> None:
    program = f"from .scores import Scores\n\nmodel = {made}\n"
    other = f"class Other:\n    def positions(self):\n        pass\n\n    def use(self):\n        {ask}.positions()\n"
    files = {"scores.py": GRID.replace("CALL", call), "program.py": program, "other.py": other}
    assert doubts(tmp_path, files, code="AMP110") == expected


SAMPLED = """
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def sample(self, wide=False):
        if wide:
            return self.query(torch.randn(4, device=self.query.weight.device))

    def forward(self, x):
        return self.query(x)
"""


@pytest.mark.parametrize(
    ("marked", "more", "expected"),
    [
        (".git/HEAD", "", True),
        (".git/HEAD", "model.sample()\n", False),
        (".git/HEAD", "getattr(model, 'sample')()\n", False),
        ("setup.py", "", False),
    ],
)
def test_a_method_that_nobody_calls(tmp_path: Path, marked: str, more: str, expected: bool) -> None:
    (tmp_path / marked).parent.mkdir(exist_ok=True)
    (tmp_path / marked).touch()
    program = f"from .scores import Scores\n\nmodel = Scores()\n{more}"
    assert ("not-passed" in doubts(tmp_path, {"scores.py": SAMPLED, "program.py": program}, code="AMP103")) is expected


CHOSEN = f"""
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def fill(self, scores, x, mask=None):
        if mask is not None:
            {FILL}
        return scores

    def forward(self, x, mask=None):
        return self.fill(self.query(x), x, mask)
"""


@pytest.mark.parametrize(
    ("call", "more", "expected"),
    [
        ("return self.scores(x)", "", True),
        ("return self.scores(x, mask)", "", False),
        ("return self.scores(x)", "model.scores.fill(x, x, x)\n", False),
    ],
)
def test_a_method_that_only_its_class_calls(tmp_path: Path, call: str, more: str, expected: bool) -> None:
    assert is_doubted(tmp_path, {**model(call), "scores.py": CHOSEN, "more.py": more}) is expected


QUERY = """
import torch

def scale(x, fast=False):
    if fast:
        with torch.autocast(x.device.type, enabled=torch.is_autocast_enabled()):
            return x * 2
    return x
"""


@pytest.mark.parametrize(("passed", "expected"), [("x", ["not-passed"]), ("x, fast=True", [])])
def test_so_are_claims_of_what_is_run(tmp_path: Path, passed: str, expected: list[str]) -> None:
    program = f"from .scores import scale\n\ndef use(x):\n    return scale({passed})\n"
    assert doubts(tmp_path, {"scores.py": QUERY, "program.py": program}, code="AMP602") == expected


LAYERED = """
import torch
from torch import nn

def attend(query, mask=None):
    scores = torch.matmul(query, query.transpose(-1, -2))
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    return scores

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        return attend(self.query(x), mask)

class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, mask):
        return self.attention(x, mask)

class Scores(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.layers = nn.ModuleList([Layer(Attention()) for _ in range(depth)])

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""


@pytest.mark.parametrize(
    ("call", "more", "expected"),
    [
        ("return self.scores(x)", "", True),
        ("return self.scores(x, mask)", "", False),
        ("return self.scores(x)", "from .scores import attend\n\ndef f(x, m):\n    return attend(x, m)\n", False),
        ("return self.scores(x)", "from .scores import attend\n\ndef f(x):\n    return attend(x)\n", True),
        (
            "return self.scores(x)",
            "from .scores import Attention\n\ndef f(x, m):\n    return Attention()(x, m)\n",
            False,
        ),
        ("return self.scores(x)", "from .scores import Attention\n\nLAYERS = [Attention]\n", False),
    ],
)
def test_what_the_project_passes_is_followed_through_layers(
    tmp_path: Path, call: str, more: str, expected: bool
) -> None:
    assert is_doubted(tmp_path, {**model(call), "scores.py": LAYERED, "more.py": more}) is expected


WIDE = """
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self, wide=False):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.wide = wide

    def forward(self, x):
        if self.wide:
            x = x.float()
        return self.query(x)
"""


@pytest.mark.parametrize(
    ("made", "more", "expected"),
    [
        ("Scores()", "", ["not-passed"]),
        ("Scores(wide=False)", "", ["not-passed"]),
        ("Scores(wide=True)", "", []),
        ("Scores()", "def f(model):\n    model.scores.wide = True\n", []),
        ("Scores(**{'wide': True})", "", []),
    ],
)
def test_an_attribute_that_keeps_what_is_passed(tmp_path: Path, made: str, more: str, expected: list[str]) -> None:
    files = {**model("return self.scores(x)", made), "scores.py": WIDE, "more.py": more}
    assert doubts(tmp_path, files, code="AMP102") == expected
