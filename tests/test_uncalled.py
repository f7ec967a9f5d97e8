"""A function or class that its file uses on branches alone which are never taken is not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """
import torch

enabled = False

def product(a, b):
    if _chooses_own(a):
        return _own(True).apply(a, b)
    return torch.mm(a, b)

def _chooses_own(a):
    if not enabled:
        return False
    return a.is_cuda

def _own(again):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return torch.mm(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            if again:
                _own(False)
            return torch.mm(grad, b.t()), torch.mm(a.t(), grad)

    return Product
"""
USER = "from . import kernel\n\n\ndef start():\n    {line}\n"


def _codes(folder: Path, kernel: str, line: str = "pass") -> set[str]:
    package = folder / "package"
    package.mkdir()
    for name, text in {"__init__.py": "", "kernel.py": kernel, "user.py": USER.format(line=line)}.items():
        (package / name).write_text(text)
    options = judging_options(Config(), load_rules())
    result = check_file(package / "kernel.py", options)
    assert not result.failures
    return {finding.code for finding in result.findings}


def test_what_a_branch_that_is_never_taken_calls_is_not_told(tmp_path: Path) -> None:
    assert _codes(tmp_path, KERNEL) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("enabled = False", "enabled = torch.cuda.is_available()"),
        ("return False", "return a.dim() == 2"),
        (
            "return torch.mm(a, b)\n\ndef _ch",
            "return later(a, b)\n\ndef later(a, b): return _own(1).apply(a, b)\n\ndef _ch",
        ),
        ("def _own(", "@torch.jit.ignore\ndef _own("),
        ("    return Product\n", "    return Product\n\nTABLE = [_own]\n"),
    ],
)
def test_what_may_be_called_is_told(tmp_path: Path, old: str, new: str) -> None:
    kernel = KERNEL.replace(old, new)
    assert kernel != KERNEL
    assert _codes(tmp_path, kernel) == {"AMP201", "AMP204"}


MODULE = KERNEL.replace(" _own(", " kernel(")
FUNCTION = """
import torch

def product(a, b):
    if torch.__version__.startswith("1.7."):
        return Product.apply(a, b)
    return torch.mm(a, b)

class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.mm(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.mm(grad, b.t()), torch.mm(a.t(), grad)
"""


@pytest.mark.parametrize(("text", "line"), [(MODULE, "kernel.product(1, 2)"), (FUNCTION, "kernel.product(1, 2)")])
def test_a_function_that_its_file_alone_applies_and_never_does_is_not_told(
    tmp_path: Path, text: str, line: str
) -> None:
    """Also where the module around it has its name."""
    assert _codes(tmp_path, text, line) == set()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (MODULE, "kernel.kernel(True).apply(1, 2)"),
        (MODULE, "kernel.product(kernel.unheard_of, 2)"),
        (MODULE, "kernel.product(kernel, 2)"),
        (FUNCTION, "kernel.Product.apply(1, 2)"),
        (FUNCTION.replace("class Product", "apply = Product.apply\n\nclass Product"), "pass"),
        (FUNCTION.replace('"1.7."', '"2."'), "pass"),
        (FUNCTION.replace("Product.apply(a, b)\n    return", "None\n    return"), "pass"),
    ],
)
def test_a_function_that_may_be_applied_is_told(tmp_path: Path, text: str, line: str) -> None:
    assert _codes(tmp_path, text, line) == {"AMP201", "AMP204"}


@pytest.mark.parametrize("line", ["kernel.enabled = True", "kernel._own(True).apply(1, 2)"])
def test_what_another_file_switches_on_or_calls_is_told(tmp_path: Path, line: str) -> None:
    assert _codes(tmp_path, KERNEL, line) == {"AMP201", "AMP204"}


BY_VERSION = """
    if any(torch.__version__.startswith(release) for release in ("1.7.", "1.8.", "1.9.")):
        return True
    return False
"""


@pytest.mark.parametrize(("line", "told"), [(BY_VERSION, False), (BY_VERSION.replace("1.8.", ""), True)])
def test_what_another_file_switches_on_for_an_old_torch_alone(tmp_path: Path, line: str, told: bool) -> None:
    kernel = KERNEL.replace("    return a.is_cuda\n", line)
    assert kernel != KERNEL
    assert _codes(tmp_path, kernel, "kernel.enabled = True") == ({"AMP201", "AMP204"} if told else set())
