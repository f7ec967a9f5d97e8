"""AMP106: a region that switches autocast off uses a tensor that nobody cast."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims import one_sided_casts
from amplint.claims.autocast_exits import full_precision, is_cast_to, layer_dtype, region_around
from amplint.claims.disagreement import describe, label, suspects_of
from amplint.claims.operands import of_layer
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.nodes import find_expression, find_operand
from amplint.rule import Applicability, Cause, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, Edit, FileFacts, Fix, Operand, Visit


class UncastAutocastExit(Rule):
    """A region with autocast switched off uses a tensor from outside without casting it.

    What it does
    ------------
    Reports an operation in a region or function with `autocast(enabled=False)` whose operands disagree because one of
    them comes from outside, where autocast was on, and is used as it arrives; at the call where the region calls what
    holds the operation. Also, as a warning, arithmetic of which one side is cast to float32 there, while of the other
    something is computed in the dtype that it came in. Possible only: an operand that a caller may pass, in whose place
    there is a number, or something unknown, where none does; and one that is low precision where a caller passes that,
    which nothing in the project is surely seen to; outside of packages, only what is read from a mapping, as from a
    batch.

    Why it is bad
    -------------
    Switching autocast off casts nothing. Inside such a region tensors keep the dtypes that they were made with: an
    activation is in the autocast dtype, a parameter or buffer still in float32. The next product of the two raises.
    Casting the activation alone to float32 is no cure, since it fails in turn when the module is held in 16 bit.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float
    RuntimeError: expected scalar type Float but found BFloat16
    ```

    Example
    -------
    ```python
    with torch.autocast(x.device.type, enabled=False):
        scores = torch.einsum("bd,cd->bc", x, self.codebook)  # x is bfloat16, the codebook float32
    ```
    Use instead:
    ```python
    with torch.autocast(x.device.type, enabled=False):
        scores = torch.einsum("bd,cd->bc", x.float(), self.codebook.float())
    ```

    Fix safety
    ----------
    Unsafe: it decides the dtype of the computation. Tensors are all cast to float32. The input of a layer is cast to
    the dtype of the layer's parameters, which runs however the module is held but is float32 only where they are. To
    keep a layer in float32 in every case, call it before the region, or hold it in float32.
    """

    code: ClassVar[str] = "AMP106"
    name: ClassVar[str] = "uncast-autocast-exit"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("autocast",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project_in = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor):
        with torch.autocast(x.device.type, enabled=False):
            z = self.project_in(x)  # expect
            codes = torch.where(z > 0, 1.0, -1.0)
        return codes


def reproduce():
    encoder = nn.Linear(8, 8)
    quantizer = Quantizer()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        quantizer(encoder(torch.randn(2, 8)))
""",
            scenario="autocast-bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Quantizer(nn.Module):
    \"\"\"Projects in the ambient dtype, quantises in float32, hands on the dtype that it got.\"\"\"

    def __init__(self):
        super().__init__()
        self.project_in = nn.Linear(8, 4)
        self.project_out = nn.Linear(4, 8)
        self.register_buffer("codebook", torch.randn(16, 4))

    def forward(self, x: torch.Tensor):
        z = self.project_in(x)
        dtype = z.dtype
        with torch.autocast(x.device.type, enabled=False):
            z, codebook = z.float(), self.codebook.float()
            scores = torch.einsum("bd,cd->bc", z, codebook)
            codes = F.softmax(scores, dim=-1) @ codebook
        return self.project_out(codes.to(dtype))


def reproduce():
    for held in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            Quantizer().to(held)(torch.randn(2, 8))
    Quantizer().bfloat16()(torch.randn(2, 8, dtype=torch.bfloat16))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        surroundings: Surroundings | None = None
        led: set[ast.expr] = set()
        for suspect in suspects_of(facts, Kind.AUTOCAST_EXIT):
            conflict: Conflict = suspect.data
            surroundings = surroundings or Surroundings.of(facts.source.tree)
            if not conflict.raises:
                found = one_sided_casts.left_behind(facts, conflict, surroundings)
                if found is not None and conflict.right.node is not None:
                    text = one_sided_casts.message(facts, conflict, *found)
                    span = facts.span(conflict.right.node)
                    yield replace(suspect, span=span, node=span, message=text, data=found[0])
                continue
            region = region_around(facts, conflict, surroundings)
            if region is None:
                message = f"{_operands(facts, conflict)}, which nothing casts where a caller switched autocast off"
                yield replace(suspect, message=message)
                continue
            message = f"{_operands(facts, conflict)}, which nothing casts where autocast is off"
            if conflict.led_by is not None:
                if conflict.led_by in led:
                    continue
                led.add(conflict.led_by)
                suspect = _at_call(facts, suspect, conflict.led_by)
            cause = Cause(facts.path, facts.span(region.node), "autocast is off from here on")
            own = [c for c in suspect.causes if c.filename == facts.path]
            others = [c for c in suspect.causes if c.filename != facts.path]
            causes = (*others, *sorted([*own, cause], key=lambda c: c.span))
            yield replace(suspect, message=message, causes=causes)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_Name(self, node: cst.Name, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        if isinstance(suspect.data, ast.expr):
            visit.report(suspect, _cast_this_side(node, suspect.data, visit))
        else:
            visit.report(suspect, _fix(node, suspect.data, visit))


def _at_call(facts: FileFacts, suspect: Suspect, call: ast.expr) -> Suspect:
    """A suspect told where the region calls what fails: what is called may be right wherever autocast is on."""
    there = Cause(facts.path, suspect.span, "here they meet")
    return replace(suspect, span=facts.span(call), causes=(*suspect.causes, there))


def _operands(facts: FileFacts, conflict: Conflict) -> str:
    left = describe(conflict, conflict.left, conflict.left_dtype)
    right = describe(conflict, conflict.right, conflict.right_dtype)
    return f"{label(facts, conflict)} gets {left} and {right}"


def _fix(node: cst.CSTNode, conflict: Conflict, visit: Visit) -> Fix | None:
    for layer, given in ((conflict.left, conflict.right), (conflict.right, conflict.left)):
        if of_layer(conflict, layer):
            return _follow_layer(node, conflict, layer, given, visit)
    return _cast_all(node, conflict, visit)


def _cast_this_side(node: cst.CSTNode, tensor: ast.expr, visit: Visit) -> Fix | None:
    """Cast the forgotten side, where it stands in the operation itself."""
    expression = find_expression(visit, node, tensor)
    if expression is None:
        return None
    return visit.fix(Applicability.UNSAFE, "Cast this side too", visit.append(expression, ".float()"))


def _follow_layer(node: cst.CSTNode, conflict: Conflict, layer: Operand, given: Operand, visit: Visit) -> Fix | None:
    dtype = layer_dtype(visit.facts, layer, given)
    expression = find_operand(visit, node, given)
    if dtype is None or expression is None or of_layer(conflict, given):
        return None
    edit = visit.append(expression, f".to({dtype})")
    return visit.fix(Applicability.UNSAFE, "Cast the input to the dtype of the layer's parameters", edit)


def _cast_all(node: cst.CSTNode, conflict: Conflict, visit: Visit) -> Fix | None:
    """Cast every operand that the code does not cast already; None where one is not written in the operation."""
    cast, full = full_precision(conflict)
    edits: list[Edit] = []
    for operand in conflict.operands:
        if is_cast_to(operand, full):
            continue
        expression = find_operand(visit, node, operand)
        if expression is None:
            return None
        edits.append(visit.append(expression, cast))
    return visit.fix(Applicability.UNSAFE, f"Cast every operand with {cast}", *edits) if edits else None
