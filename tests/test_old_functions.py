"""An autograd Function of which objects are called, as torch before 1.5 had it, raises before its forward runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

FUNCTION = """
import torch

class Product(torch.autograd.Function):
    STATIC
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.mm(a, b)

    STATIC
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.mm(grad, b.t()), torch.mm(a.t(), grad)
"""
LAYER = """
import torch
from .product import Product

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return CALL
"""
OLD, NEW = "Product()(x, self.weight)", "Product.apply(x, self.weight)"


@pytest.mark.parametrize(
    ("static", "call", "runs"),
    [("", OLD, False), ("", NEW, True), ("@staticmethod", NEW, True), ("", f"{NEW} if x.is_cuda else {OLD}", True)],
)
def test_what_torch_runs_is_told(tmp_path: Path, static: str, call: str, runs: bool) -> None:
    package = tmp_path / "package"
    files = {
        "__init__.py": "",
        "product.py": FUNCTION.replace("STATIC", static),
        "layer.py": LAYER.replace("CALL", call),
    }
    package.mkdir()
    for name, text in files.items():
        (package / name).write_text(text)
    names: dict[str, type[torch.nn.Module]] = {}
    one = files["product.py"] + files["layer.py"].replace("from .product import Product", "")
    exec(one.replace("x.is_cuda", "True"), names)
    if runs:
        assert names["Layer"]()(torch.ones(4, 4)) is not None
    else:
        with (
            pytest.raises(RuntimeError, match="Legacy autograd function"),
            pytest.warns(DeprecationWarning, match="static"),
        ):
            names["Layer"]()(torch.ones(4, 4))
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP201"])
    (found,) = [f for f in check_file(package / "product.py", options).findings if f.code == "AMP201"]
    assert ("fails-anyhow" in [held.doubt.name for held in found.doubts]) == (not runs)
