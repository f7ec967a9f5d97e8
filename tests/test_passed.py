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


KEPT = SCORES.replace("def __init__(self):", "def __init__(self, top=-1, kind=None):").replace(
    "        self.query =", "        self.top = top\n        self.kind = kind\n        self.query =", 1
)


@pytest.mark.parametrize(
    ("test", "made", "expected"),
    [
        ("self.top > 0", "Scores()", True),
        ("self.top > 0", "Scores(top=-1)", True),
        ("self.top > 0", "Scores(-1)", True),
        ("not self.training and self.top > 0", "Scores()", True),
        ("self.kind == 'low'", "Scores()", True),
        ("self.kind is not None", "Scores(kind=None)", True),
        ("self.top != 4", "Scores(top=4)", True),
        ("self.kind == 'low'", "Scores(kind='high')", True),
        ("self.kind != 'high' and self.top < 0", "Scores(4, 'high')", True),
        ("self.kind == 'low'", "Scores(kind='low')", False),
        ("self.kind == 'low'", "Scores(kind='high') or Scores(kind='low')", False),
        ("self.top > 0", "Scores(top=4)", False),
        ("self.top > 0", "Scores(mask)", False),
        ("self.top > 0", "Scores(**mask)", False),
        ("self.top < 0", "Scores()", False),
        ("self.top > 0 or mask", "Scores()", False),
        ("self.query.top > 0", "Scores()", False),
    ],
)
def test_what_the_constructor_is_passed(tmp_path: Path, test: str, made: str, expected: bool) -> None:
    body = f"if {test}:\n            {FILL}"
    files = {**model("return self.scores(x, mask)", made), "scores.py": KEPT.replace("BODY", body)}
    assert is_doubted(tmp_path, files) is expected


def test_what_only_has_the_name_sets_nothing(tmp_path: Path) -> None:
    body = f"if self.top > 0:\n            {FILL}"
    options = "OPTIONS = {'top': 1}\nprint(OPTIONS['top'], model.top == 1)\n"
    more = f"{options}\nclass More:\n    def f(self):\n        self.top = 1\n"
    files = {**model("return self.scores(x, mask)"), "scores.py": KEPT.replace("BODY", body), "more.py": more}
    assert is_doubted(tmp_path, files)


@pytest.mark.parametrize(
    ("scores", "more"),
    [
        (KEPT, "from .scores import Scores\n\nclass Wide(Scores):\n    pass\n"),
        (KEPT, "from .scores import Scores\n\ndef wide():\n    return Scores(top=2)\n"),
        (KEPT.replace("        scores =", "        self.top = 1\n        scores =", 1), ""),
        (KEPT.replace("        self.top = top", "        top = 1\n        self.top = top", 1), ""),
        (KEPT + "\ndef widen(scores):\n    scores.top = 1\n", ""),
        (KEPT, "def widen(model):\n    model.scores.top = 1\n"),
        (KEPT, "def widen(model):\n    model.scores.top, other = 1, 2\n"),
        (KEPT, "def widen(model):\n    setattr(model.scores, 'top', 1)\n"),
    ],
)
def test_what_may_be_passed_or_set_elsewhere(tmp_path: Path, scores: str, more: str) -> None:
    body = f"if self.top > 0:\n            {FILL}"
    files = {**model("return self.scores(x, mask)"), "scores.py": scores.replace("BODY", body), "more.py": more}
    assert not is_doubted(tmp_path, files)


def test_each_call_may_pass_what_another_branch_needs(tmp_path: Path) -> None:
    passing = "pass\n        el"
    known = f"if self.kind == 'low':\n            {passing}if self.kind == 'high':\n            {passing}se:"
    body = f"{known}\n            {FILL}"
    made = "nn.ModuleList([Scores(kind='high'), Scores(kind='low')])"
    files = {**model("return self.scores[0](x, mask)", made), "scores.py": KEPT.replace("BODY", body)}
    assert is_doubted(tmp_path, files)


LOW = KEPT.replace("BODY", f"if self.kind == 'low':\n            {FILL}")
DERIVED = """
from .scores import Scores

class Wide(Scores):
    def __init__(self, wide=1, **kwargs):
        CHANGED
        super().__init__(wide, **kwargs)

"""


@pytest.mark.parametrize(
    ("changed", "made", "expected"),
    [
        ("pass", "Wide()", True),
        ("pass", "Wide(kind='high')", True),
        ("pass", "Wide(kind='low')", False),
        ("pass", "Wide(kind=mask)", False),
        ("pass", "Wide(**mask)", False),
        ("kwargs.pop('top')", "Wide()", True),
        ("assert 'top' not in kwargs and (kwargs['kind'] or kwargs.get('kind'))", "Wide()", True),
        ("kwargs['kind'] = 'low'", "Wide()", False),
        ("kwargs.update(kind='low')", "Wide()", False),
        ("kwargs = {'kind': 'low'}", "Wide()", False),
        ("pass", "None", False),
    ],
)
def test_what_a_class_that_derives_from_it_is_passed(tmp_path: Path, changed: str, made: str, expected: bool) -> None:
    derived = DERIVED.replace("CHANGED", changed)
    files = {"scores.py": LOW, "wide.py": f"{derived}\ndef make(mask=None):\n    return {made}\n"}
    assert is_doubted(tmp_path, files) is expected


@pytest.mark.parametrize(("made", "expected"), [("Wide()", True), ("Wide(kind='low')", False), ("None", False)])
def test_what_derives_without_a_constructor(tmp_path: Path, made: str, expected: bool) -> None:
    derived = "from .scores import Scores\n\nclass Wide(Scores):\n    pass\n\n"
    files = {"scores.py": LOW, "wide.py": f"{derived}\ndef make():\n    return {made}\n"}
    assert is_doubted(tmp_path, files) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [("Scores(kind='high')", True), ("Scores(kind='low')", False), ("Scores(kind=ARGUMENTS.kind)", False)],
)
def test_what_a_program_passes(tmp_path: Path, made: str, expected: bool) -> None:
    program = f"from .scores import Scores\n\nif __name__ == '__main__':\n    model = {made}\n"
    assert is_doubted(tmp_path, {"scores.py": LOW, "program.py": program}) is expected


WAY = """
from torch import nn
from .scores import Scores

class Model(nn.Module):
    def __init__(self, scored=False):
        super().__init__()
        self.other = nn.Identity()
        MADE

    def forward(self, x):
        return self.scores(x)

def make(scored):
    return Model(PASSED)
"""


@pytest.mark.parametrize(
    ("made", "passed", "expected"),
    [
        ("self.scores = Scores() if scored else None", "", True),
        ("self.scores = Scores() if scored else None", "scored=False", True),
        ("self.scores = scored and Scores()", "", True),
        ("if scored:\n            self.scores = Scores()", "", True),
        ("self.scores = Scores() if scored else None", "scored=True", False),
        ("self.scores = Scores() if scored else None", "scored", False),
        ("self.scores = Scores() if not scored else None", "", False),
        ("self.scores = scored or Scores()", "", False),
        ("self.scores = Scores()", "", False),
    ],
)
def test_what_is_made_of_nothing_that_is_passed_is_not_reached(
    tmp_path: Path, made: str, passed: str, expected: bool
) -> None:
    files = {"model.py": WAY.replace("MADE", made).replace("PASSED", passed)}
    assert doubts(tmp_path, files, FILL) == (["no-way-in"] if expected else [])


@pytest.mark.parametrize(("module", "expected"), [("other", True), ("scores", False), ("missing", False)])
def test_what_another_file_defines_by_that_name_is_another(tmp_path: Path, module: str, expected: bool) -> None:
    other = "class Scores:\n    def __init__(self, kind):\n        pass\n"
    more = f"from .{module} import Scores\n\ndef make():\n    return Scores(kind='low')\n"
    files = {**model("return self.scores(x, mask)"), "scores.py": LOW, "other.py": other, "more.py": more}
    assert is_doubted(tmp_path, files) is expected


@pytest.mark.parametrize(("used", "expected"), [("Model", True), ("Model, Left", False)])
def test_what_only_the_left_over_pass_is_passed_by_none(tmp_path: Path, used: str, expected: bool) -> None:
    left = MODEL.replace("MADE", "Scores()").replace("PARAMETERS", "x, mask").replace("class Model", "class Left")
    models = model("return self.scores(x)")["model.py"] + left.replace("CALL", "return self.scores(x, mask)")
    program = f"from .model import {used}\nprint({used})\n"
    assert is_doubted(tmp_path, {"model.py": models, "program.py": program}) is expected


GRID = """
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self, grid=False):
        super().__init__()
        self.grid = grid
        self.query = nn.Linear(4, 4)

    def positions(self):
        return torch.linspace(0, 1, 4, dtype=torch.float32)

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
        ("pass", "Scores()", "self.other", []),
        ("pass", "Scores(grid=1)", "self", []),
        ("print(self.positions())", "Scores()", "self", []),
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
