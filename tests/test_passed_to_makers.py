"""A line that needs an argument of a constructor which nothing in the project passes is merely possible; so is what
only such a line makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_passed import FILL, MODEL, SCORES, doubts, is_doubted, model

if TYPE_CHECKING:
    from pathlib import Path

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
    assert doubts(tmp_path, files, FILL) == (["no-way-in", "not-passed"] if expected else [])


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
