"""HOUSE101: a tensor is cast to float16."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.rule import ASSUMED, TENSOR_CODE, Applicability, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class Float16Cast(Rule):
    """A tensor is cast to float16, and this house trains in bfloat16.

    What it does
    ------------
    Reports `.half()` on a tensor. On a module it is silent.

    Why it is bad
    -------------
    float16 ends at 65504: what is larger becomes infinite. bfloat16 has the range of float32.

    How it shows
    ------------
    Losses that are `inf` or `nan`.

    Example
    -------
    ```python
    x = x.half()
    ```
    Use instead:
    ```python
    x = x.bfloat16()
    ```

    Fix safety
    ----------
    Unsafe: bfloat16 has fewer digits.
    """

    code = "HOUSE101"
    name = "float16-cast"
    severity = Severity.WARNING
    tokens = (".half()",)
    context = TENSOR_CODE
    fix = Applicability.UNSAFE
    bad = (
        Example(
            """\
import torch


def energy(x: torch.Tensor):
    return (x.float() * 1000).half()  # expect


def reproduce():
    assert energy(torch.full((4,), 100.0)).isfinite().all()
"""
        ),
    )
    good = (
        Example(
            """\
import torch
from torch import nn


def energy(x: torch.Tensor):
    return (x.float() * 1000).bfloat16()


def smaller():
    return nn.Linear(4, 4).half()


def reproduce():
    assert energy(torch.full((4,), 100.0)).isfinite().all()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        for cast in facts.casts:
            if isinstance(cast.node.func, ast.Attribute) and cast.node.func.attr == "half":
                span = facts.span(cast.node)
                message = "this is cast to float16, which ends at 65504"
                yield Suspect(span, span, message, facts.all_scenarios(), ASSUMED, of_weights=False)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        new = f"{visit.code(node.func).removesuffix('.half')}.bfloat16()"
        fix = visit.fix(Applicability.UNSAFE, "Cast to bfloat16", visit.replace(node, new))
        visit.report(suspect, fix)
