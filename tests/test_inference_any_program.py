"""Properties: an analysis of anything that parses ends within its budget, never raises, and always says the same."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_random import OTHER, mutated, said, written

from amplint.plugins import load_rules

SCRIPT = Path(__file__).with_name("program_random.py")
HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
TEXTS = [path.read_text() for path in sorted((ROOT / "fixtures").rglob("*.py"))]
TEXTS += [example.source for rule in load_rules() for example in (*rule.bad, *rule.good)]
LARGEST_COST = 15.0
"""Seconds of CPU for one of the programs below, both analyses together."""

often = settings(
    max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
seeds = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with a module that imports the one that is written, and back."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "__init__.py").touch()
    (folder / "other.py").write_text(OTHER)
    (folder / "program.py").touch()
    return folder


@often
@given(seeds)
def test_of_random_programs(package: Path, seed: int) -> None:
    text = written(Random(seed))
    assert said(package / "program.py", text) == said(package / "program.py", text), text


@often
@given(seeds, st.sampled_from(TEXTS))
def test_of_programs_made_of_others(package: Path, seed: int, text: str) -> None:
    text = mutated(Random(seed), text)
    assert said(package / "program.py", text) == said(package / "program.py", text), text


def test_what_is_said_does_not_depend_on_hashes(package: Path) -> None:
    command = [sys.executable, str(SCRIPT), "0", "80", str(package)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    runs = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}, text=True
        )
        for seed in ("1", "2")
    ]
    digests = {run.communicate()[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert len(digests) == 1


def function(*lines: str) -> str:
    return HEADER + "def f(x, y):\n    x = x @ x\n" + "".join(f"    {line}\n" for line in lines)


def nested(head: str, levels: int, last: str = "x = x @ x") -> str:
    return function(*(" " * level + head for level in range(levels)), " " * levels + last)


GROWING = {
    "list": function("a = [x]", *["a = a + a"] * 40),
    "starred list": function("a = [x]", *["a = [*a, *a]"] * 40),
    "tuples": function("a = (x, x)", *["a = (a, a)"] * 40, "if y: a = (a, x)", "return torch.cat(a)"),
    "dicts": function("a = {'k': x}", *["a = {'a': a, 'b': a}"] * 40, "if y: a = dict(a=x)", "return a"),
    "joined lists": function("a = x", *["a = (a, [a], {'a': a})", "b = torch.cat(a) if y else a"] * 30),
    "arguments": HEADER + "def g(*a): return a\ndef f(x):\n    a = (x @ x,)\n" + "    a = g(*a, *a)\n" * 40,
    "text": function("a = 'aaaa'", *["a = a + a"] * 50, "return getattr(x, a)"),
    "replaced text": function("a = 'aaaa'", *["a = a.replace('a', 'aa')"] * 50, "return getattr(x, a)"),
    "layers": HEADER
    + "s = nn.Linear(1, 1)\n"
    + "s = nn.Sequential(s, s)\n" * 40
    + "t = s.half()\ny = t(torch.ones(1))\n",
    "encoders": function(
        "e = nn.TransformerEncoderLayer(8, 8)", *["e = nn.TransformerEncoder(e, 2, norm=e)"] * 30, "e(x)"
    ),
    "partials": function("p = torch.add", *["p = functools.partial(p, p, p)"] * 40, "return p(x)").replace(
        "import torch\n", "import functools\nimport torch\n", 1
    ),
    "itself": function(
        "d = {}", "d['d'] = d", "if y: d = {}", "l = nn.ModuleList()", "l.append(l)", "return d['d'], l"
    ),
    "calls": HEADER
    + "def f0(x): return x @ x\n"
    + "".join(f"def f{i}(x): return f{i - 1}(x) + f{i - 1}((x, x))\n" for i in range(1, 300)),
    "large literals": HEADER + f"T = [{'1.5, ' * 30_000}]\ndef f(x):\n"
    "    for i in x:\n        t = T if i else list(T)\n        x = x + torch.tensor(t)\n",
    "while": nested("while True:", 90),
    "for": nested("for i in x:", 90),
    "with": nested("with torch.autocast('cuda'):", 90),
    "bases": HEADER + "class C0(C0, C1): pass\nclass C1(C0):\n    def forward(self, x): return self.forward(x)\n",
    "elif": HEADER + "if x: pass\n" + "elif y: z = x.half()\n" * 1_500,
    "elif in a function": function("if x: pass", *["elif y: x = x.half()"] * 1_500),
    "names": HEADER + "".join(f"a{i} = a{i - 1} + 1\n" for i in range(2_000, 0, -1)) + "def f(x): return a2000 @ x\n",
    "operators": function("return " + "x + " * 900 + "x"),
    "attributes": function("return torch.add(x, out=x" + ".a" * 900 + ")"),
    "casts": function("return x" + ".half()" * 900),
    "lambdas": function("return " + "(lambda x: " * 90 + "x" + ")(x)" * 90),
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_without_end(name: str, package: Path) -> None:
    text = GROWING[name]
    ast.parse(text)
    start = time.process_time()
    said(package / "program.py", text)
    assert time.process_time() - start < LARGEST_COST


HUGE = "0x" + "f" * 4_000
STRANGE = [
    function(f"return F.conv1d(**{{{HUGE}: 1}}), x.to({HUGE}), torch.norm(x, {HUGE}), torch.div(x, y, {HUGE})"),
    function(f"return torch.zeros(3, dtype=x.dtype if {HUGE} else None), F.relu(x, inplace=({HUGE}).a)"),
    function("return 'a'.replace('b'), 'a'.lower('b'), 'a'.startswith(), 'a'.strip('b', 'c'), x.to('\\ud800')"),
    f"import {'a' * 300}\nfrom {'b' * 300} import c\nfrom ..... import d\nimport torch\nx = {'a' * 300}.b @ c @ d\n",
    HEADER + "def f(x: '\\0', y: '(', z: '" + "(" * 200 + "', a: '\\ud800'): return x @ y @ z\n",
    HEADER
    + "class A(torch.autograd.Function):\n    def forward(): return 1\n    def backward(): return 1\nA.apply()()\n",
    HEADER + "class A(nn.Module):\n    def forward(): return super().forward()\n    def __init__(): pass\nA()(1)\n",
]


@pytest.mark.parametrize("text", STRANGE)
def test_what_python_itself_cannot_write_call_or_open(text: str, package: Path) -> None:
    said(package / "program.py", text)


def test_a_folder_that_may_not_be_looked_into(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", denied)
    text = HEADER + "from .a import b\nimport c\ndef f(x): return x @ b @ c.d\n"
    assert said(package / "closed" / "program.py", text)


def test_dicts_that_hold_themselves_in_another_file(package: Path) -> None:
    said(package / "program.py", HEADER + "from .other import D\ndef f(x): return D['d']['d']['a'](1, 1)(x)\n")


def test_annotations_written_as_strings_are_no_expressions_of_the_first_row(package: Path) -> None:
    text = "import torch\nimport b\ndef f(x: 'b.C', y: 'D'):\n    return x @ y\n"
    assert "row=1" not in said(package / "program.py", text)
