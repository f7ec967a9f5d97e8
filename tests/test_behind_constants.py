"""What a constant of the file leaves out is merely possible."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

from amplint.infer.syntax.behind_constants import left_out

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """import torch

FLAG = False

if FLAG:

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad @ y.t(), x.t() @ grad
"""


def test_nothing_is_claimed_of_what_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "loss.py"
    file.write_text(PROGRAM)
    assert "AMP201" not in amplint("check", str(file)).stdout
    assert "AMP201" in amplint("check", "--pedantic", str(file)).stdout
    assert "switched-off" in amplint("check", "--pedantic", str(file)).stdout
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace("FLAG = False", "FLAG = True"))
    assert "AMP201" in amplint("check", str(other)).stdout


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("import loss\nloss.FLAG = True\n", True),
        ("import loss\nsetattr(loss, 'FLAG', True)\n", True),
        ("import loss\nprint(loss.FLAG)\n", False),
    ],
)
def test_another_file_of_the_project_may_set_the_constant(tmp_path: Path, setting: str, told: bool) -> None:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "loss.py").write_text(PROGRAM)
    (tmp_path / "train.py").write_text(setting)
    assert ("AMP201" in amplint("check", str(tmp_path / "loss.py")).stdout) is told


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("A = False\nif A:\n    f()\n", ((3, 3),)),
        ("A = True\nif A:\n    f()\nelse:\n    g()\n", ((5, 5),)),
        ("A = True\ndef f(x):\n    if not A and x:\n        g()\n        g()\n", ((4, 5),)),
        ("A = False\nB = False\nif A or B:\n    f()\n", ((4, 4),)),
        ("A = False\nif A or b:\n    f()\n", ()),
        ("A = False\nif b and not A:\n    f()\n", ()),
        ("A = False\ntry:\n    import b\n    A = True\nexcept ImportError:\n    pass\nif A:\n    f()\n", ()),
        ("A = False\ndef on():\n    global A\n    A = True\nif A:\n    f()\n", ()),
        ("A = False\nfrom b import A\nif A:\n    f()\n", ()),
        ("A = False\ndef f(A):\n    if A:\n        g()\n", ()),
        ("def f():\n    a = None\n    if a:\n        g()\n", ((4, 4),)),
        ("def f():\n    a = True\n    while b:\n        if not a:\n            g()\n", ((5, 5),)),
        ("def f():\n    a = True\n    while b:\n        if a:\n            g()\n        a = False\n", ()),
        ("def f(a):\n    a = None\n    if a:\n        g()\n", ()),
        ("def f():\n    a = None\n    def g():\n        nonlocal a\n        a = 1\n    if a:\n        h()\n", ()),
        ("def f():\n    a = None\n    with b() as a:\n        if a:\n            g()\n", ()),
        ("def f():\n    if b:\n        a = None\n    if a:\n        g()\n", ()),
        ("A = False\nfor A in b:\n    if A:\n        g()\n", ()),
        ("A = False\nglobals()['A'] = True\nif A:\n    f()\n", ()),
        ("A = False\nfrom b import *\nif A:\n    f()\n", ()),
        ("A = False\nmatch b:\n    case A:\n        pass\nif A:\n    f()\n", ()),
        ("if A:\n    f()\n", ()),
    ],
)
def test_what_the_file_binds_once_decides(program: str, lines: tuple[tuple[int, int], ...]) -> None:
    assert tuple((found.first, found.last) for found in left_out(ast.parse(program))) == lines
