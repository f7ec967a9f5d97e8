"""What a module binds where it makes up for a name that older releases of torch lack."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

from amplint.infer.syntax.bindings import module_bindings

if TYPE_CHECKING:
    from pathlib import Path

LACKED = """\
import torch

try:
    custom_fwd = torch.amp.custom_fwd
except AttributeError:
    def custom_fwd(**keywords):
        return lambda function: function
    SHIM = True
"""
FUNCTION = """\
import torch
from shims import custom_fwd


class Product(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x, basis):
        left, _, right = torch.linalg.svd(x)
        ctx.save_for_backward(left, right)
        return left @ right

    @staticmethod
    def backward(ctx, gradient):
        left, right = ctx.saved_tensors
        with torch.autocast("cuda", enabled=False):
            return gradient @ right.mT @ left.mT, None


class Net(torch.nn.Module):
    def forward(self, x, basis):
        return Product.apply(x, basis)
"""


def bound(source: str) -> list[tuple[str, int]]:
    return [(name, binding.lineno) for name, binding in module_bindings(ast.parse(source).body)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (LACKED, [("torch", 1), ("custom_fwd", 4), ("SHIM", 8)]),
        ("try:\n    from torch import a\nexcept ImportError:\n    a = None\nelse:\n    b = a\n", [("a", 2), ("b", 6)]),
        ("try:\n    from other import a\nexcept ImportError:\n    a = None\n", [("a", 2), ("a", 4)]),
        ("try:\n    a = made()\nexcept RuntimeError:\n    a = None\n", [("a", 2), ("a", 4)]),
        ("try:\n    a = made()\nfinally:\n    a = None\n", [("a", 2), ("a", 4)]),
    ],
)
def test_what_a_handler_binds(source: str, expected: list[tuple[str, int]]) -> None:
    assert bound(source) == expected


def test_a_decorator_of_torch_under_the_name_that_a_project_gives_it(project: Path) -> None:
    (project / "shims.py").write_text(LACKED)
    (project / "function.py").write_text(FUNCTION)
    assert amplint("check", ".", "--select", "AMP204").status == 0
    plain = FUNCTION.replace('    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)\n', "")
    (project / "function.py").write_text(plain)
    assert "AMP204" in amplint("check", ".", "--select", "AMP204").stdout
