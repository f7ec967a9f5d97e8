"""Which code runs on CUDA alone, as the tests around it say."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_SAME, _OTHER = (ast.Eq, ast.In, ast.Is), (ast.NotEq, ast.NotIn, ast.IsNot)


def on_cuda(node: ast.AST, around: Surroundings, *, where_available: bool = False) -> bool:
    """Whether a test of CUDA decides that a node is evaluated, and does not answer that the device is another one.

    ``where_available``: a test of the machine will do, ``torch.cuda.is_available()``.
    """
    return any(
        (asks_for_cuda(test, around) if where_available else _asks_for_device(around.asked(test)))
        and not _is_another(around.asked(test), answer)
        for test, answer in around.tests(node)
    )


def asks_for_cuda(test: ast.expr, around: Surroundings) -> bool:
    """Whether an expression asks ``torch.cuda``, or a tensor or string whether it is of CUDA."""
    asked = around.asked(test)
    return _asks_for_device(asked) or any(around.torch_name(n).startswith("torch.cuda.") for n in ast.walk(asked))


def _asks_for_device(test: ast.expr) -> bool:
    """Whether an expression asks if something lies on a CUDA device."""
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda"):
            return True
    return False


def _is_another(test: ast.expr, answer: bool) -> bool:
    """Whether an answer says that the device is not CUDA's: ``device.type == "cuda"`` is false."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], _OTHER if answer else _SAME)
    asked = test.func if isinstance(test, ast.Call) else test
    return not answer and isinstance(asked, ast.Attribute) and asked.attr in ("is_cuda", "is_available", "startswith")
