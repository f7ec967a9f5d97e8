"""AMP204: a gradient in ``backward`` meets a tensor of another dtype."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import describe, suspects_of
from amplint.claims.gradient_sums import summed_in_place
from amplint.claims.operands import dtype_of, known_floating, short_name
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.casts import cast_to_lead
from amplint.rewriting.nodes import find_operand
from amplint.rule import TENSOR_CODE, Applicability, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Fix, Operand, Visit

_CASTS = ("float", "double", "half", "bfloat16")


class BackwardDtype(Rule):
    """The gradient in an autograd Function's `backward` meets a tensor of another dtype.

    What it does
    ------------
    Reports an operation in `backward` of a `torch.autograd.Function` between a gradient and a tensor of another dtype;
    and, as a warning, `torch.zeros_like(weight)` where a Function, or a function that it calls, adds a gradient to it
    in a loop and returns it. A gradient is not taken for low precision where `forward` combines what autocast lowered
    with a tensor that some object was constructed with: the output is as wide as that, and nothing says how wide.

    Why it is bad
    -------------
    Autograd hands `backward` a gradient of the dtype that `forward` returned, not of the one that it was given. If
    `forward` multiplies under autocast, or converts its result, that is another dtype than the saved input or weight
    has. Autocast does not help: it is off in a plain `backward`, and it never casts for in-place forms. The error shows
    only in `loss.backward()`, far from the line that chose the dtype.

    A gradient that is added up over chunks in the dtype of a 16-bit weight rounds at every addition, and stops growing
    once a chunk is smaller than 1/256 of it. One product over all chunks adds up in float32.

    How it shows
    ------------
    ```text
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float
    RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float
    ```

    Example
    -------
    ```python
    @staticmethod
    def backward(ctx, grad_output):
        (weight,) = ctx.saved_tensors
        return grad_output @ weight  # grad_output is float16 under autocast, the weight float32
    ```
    Use instead:
    ```python
    @staticmethod
    def backward(ctx, grad_output):
        (weight,) = ctx.saved_tensors
        return grad_output.to(weight.dtype) @ weight
    ```

    Fix safety
    ----------
    Casting the gradient to the other operand's dtype does nothing where the two were equal. The fix is safe when the
    other operand is known to be a floating tensor, and unsafe otherwise: a quantised weight is integer, and a gradient
    cast to integers is lost. There is no fix where the other operand's dtype cannot be named at that place. A sum over
    a loop is made in float32, which needs more memory, where all that writes to it promotes; autograd casts what
    `backward` returns. Where an `addmm` writes to it, which wants one dtype, there is no fix.
    """

    code: ClassVar[str] = "AMP204"
    name: ClassVar[str] = "backward-dtype"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("backward",)
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class PreciseLinear(torch.autograd.Function):
    \"\"\"Multiplies in float32, also in a 16 bit model, and answers in the dtype that it was given.\"\"\"

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, weight):
        wide = weight.float()
        ctx.save_for_backward(wide)
        return torch.mm(x.float(), wide.t()).to(x.dtype)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        (wide,) = ctx.saved_tensors
        return grad_output @ wide, None  # expect


def reproduce():
    x = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = nn.Parameter(torch.randn(4, 8, dtype=torch.bfloat16))
    PreciseLinear.apply(x, weight).sum().backward()
""",
            scenario="bf16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class PreciseLinear(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.mm(x.float(), weight.float().t()).to(x.dtype)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        gradient = grad_output.float()
        grad_x = gradient @ weight.float()
        grad_weight = gradient.t() @ x.float()
        return grad_x.to(x.dtype), grad_weight.to(weight.dtype)


def reproduce():
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(3, 8, dtype=dtype, requires_grad=True)
        weight = nn.Parameter(torch.randn(4, 8, dtype=dtype))
        PreciseLinear.apply(x, weight).sum().backward()
""",
            device="cpu",
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for suspect in suspects_of(facts, Kind.BACKWARD):
            yield replace(suspect, message=_message(suspect.data))
        yield from summed_in_place(facts)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if isinstance(suspect.data, ast.Call):
            float32, imports = visit.import_name("torch", "float32")
            edits = (*imports, visit.add_argument(node, f"dtype={float32}"))
            visit.report(suspect, visit.fix(Applicability.UNSAFE, "Add them up in float32", *edits))
            return
        visit.report(suspect, _fix(node, suspect.data, visit) if suspect.data is not None else None)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))

    def visit_Assign(self, node: cst.Assign, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _sides(conflict: Conflict) -> tuple[Operand, Operand, str, str]:
    """The gradient and what it meets, and their dtypes."""
    if conflict.left.value.gradient:
        return conflict.left, conflict.right, conflict.left_dtype, conflict.right_dtype
    return conflict.right, conflict.left, conflict.right_dtype, conflict.left_dtype


def _message(conflict: Conflict) -> str:
    gradient, other, gradient_dtype, other_dtype = _sides(conflict)
    return (
        f"{short_name(conflict.op)} gets {describe(conflict, gradient, gradient_dtype)}, in the dtype of forward's"
        f" result, and {describe(conflict, other, other_dtype)}"
    )


def _fix(node: cst.CSTNode, conflict: Conflict, visit: Visit) -> Fix | None:
    gradient, other, _, _ = _sides(conflict)
    target = _written(conflict) or other
    cast = _cast_like(visit.facts, conflict, target)
    edits = cast_to_lead(visit, node, conflict, target, cast) if cast is not None else None
    if not edits or find_operand(visit, node, gradient) is None or target.value.gradient:
        return None
    floating = known_floating(target)
    return visit.fix(
        Applicability.SAFE if floating and not target.value.maybe else Applicability.UNSAFE,
        "Cast the gradient to the other operand's dtype",
        *edits,
    )


def _written(conflict: Conflict) -> Operand | None:
    """The tensor that an in-place or ``out=`` form writes: all other operands must have its dtype."""
    name = "self" if conflict.op.endswith("_") else "out"
    return next((operand for operand in conflict.operands if operand.name == name), None)


def _cast_like(facts: FileFacts, conflict: Conflict, operand: Operand) -> str | None:
    """A trailer that casts to the operand's dtype: the operand's own cast where it has one, else ``.to(x.dtype)``."""
    node = operand.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        if node.func.attr in _CASTS and not node.args:
            return f".{node.func.attr}()"
        if node.func.attr == "to" and len(node.args) == 1 and _is_dtype(facts, node.args[0]):
            return f".to({ast.unparse(node.args[0])})"
    dtype = dtype_of(facts, conflict, operand)
    return f".to({dtype})" if dtype is not None else None


def _is_dtype(facts: FileFacts, node: ast.expr) -> bool:
    """A path that says of itself that it is a dtype, which may be read twice."""
    if not isinstance(node, ast.Attribute):
        return False
    path: ast.expr = node
    while isinstance(path, ast.Attribute):
        path = path.value
    return isinstance(path, ast.Name) and Surroundings.of(facts.source.tree).is_dtype(node)
