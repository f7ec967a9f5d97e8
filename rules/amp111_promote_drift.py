"""AMP111: activations that become float32 on the way through a half-precision module."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.device_followers import Joined
from amplint.claims.made_tensors import quoted
from amplint.claims.merged_weights import Merge
from amplint.claims.operands import dtype_in, dtype_of_tensor
from amplint.claims.rotary_embeddings import Rotation
from amplint.claims.silent_float32 import merged, padded, promotions_of, rotated, widened
from amplint.rewriting.casts import report_promotion
from amplint.rewriting.nodes import find_expression
from amplint.rule import TENSOR_CODE, Apart, Applicability, Example, Promotion, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class PromoteDrift(Rule):
    """Activations, or a weight, become float32 without a word, and stay so where a half-precision one is expected.

    What it does
    ------------
    Reports, where nothing casts the result back:

    - sums, products, `torch.cat`, `torch.where` and the other operations that promote, where a half-precision operand
      meets a float32 one that is a constant made without a dtype, a parameter that keeps float32, or cast up by the
      module itself, and what is concatenated with a constant takes its own place: `x = torch.cat([pad, x])`; with
      `--pedantic` also where `forward` returns the result, which may be meant, as a router's weights are;
    - `torch.cat` of a tensor and a constant of at least three dimensions that was made for it, on its device, and
      without a dtype;
    - `torch.where` under autocast between activations and a parameter, which autocast does not cast, unless the result
      goes straight on into an operation with another parameter, or with items of an embedding, that is float32 too;
    - a rotary embedding that takes the sine and cosine of its angles itself: those are float32 wherever they are right;
    - an operation that autocast runs in float32 (`F.normalize`, `softmax`, a sum), on the way of a query, key or value
      into a kernel or `autograd.Function` that gets the others in half precision;
    - `layer.weight.data = layer.weight.data * self.scale`: the product replaces another module's weight, and its dtype.

    Where an operation in the same file fails for it, that is the finding (AMP102, AMP103, AMP104), and where the
    float32 operand is a table of a fixed dtype, AMP110 speaks.

    Why it is bad
    -------------
    In a half-precision model everything behind such a place is float32 until a layer with half-precision weights
    raises, which may be in another file; up to there it takes twice the memory, and the products run several times
    slower than in 16 bit. Compiled kernels get what they were not built for. A merged weight makes its layer raise for
    the next input.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype:
    c10::BFloat16 and value.dtype: c10::BFloat16 instead.
    ```
    in the next layer; or not at all, where only promoting operations follow.

    Example
    -------
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights
    ```
    Use instead:
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights.to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation, or what follows it, is then computed in half precision, and under autocast its result may be
    narrower than it was. A float32 operand is cast to the dtype of the other; the result of a rotation, of an operation
    that autocast runs in float32, and of a merge is cast back to the dtype of what it replaces. Where the operation
    itself needs float32, cast its result instead of the operand.
    """

    code: ClassVar[str] = "AMP111"
    name: ClassVar[str] = "promote-drift"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = ("forward", ".cos(", ".data = ")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class PaddedQuery(nn.Module):
    def __init__(self, dim=8, to=4):
        super().__init__()
        self.to_query = nn.Linear(dim, dim)
        self.to = to

    def forward(self, x):
        query = self.to_query(x)
        pad = torch.zeros(x.shape[0], self.to - x.shape[1], x.shape[2]).to(query.device)
        query = torch.cat([query, pad], dim=1)  # expect
        assert query.dtype == x.dtype, "the query is float32"
        return query.argmax(-1)


def reproduce():
    PaddedQuery().half()(torch.randn(2, 3, 8, dtype=torch.float16))
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        normed = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
        return (normed * self.weight).type_as(x)


class Fade(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
        faded = self.norm(x) * weights.to(x.dtype) * self.scale + torch.tensor(0.5)
        return torch.cat([x.new_zeros(x.shape), faded]), (weights * (x - target)).mean()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        yield from promotions_of(facts, fixed=False)
        for suspect in (*widened(facts), *padded(facts), *rotated(facts), *merged(facts)):
            yield replace(suspect, message=_message(suspect.data))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        _report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        _report(node, suspect, visit)


def _message(found: Apart | Joined | Rotation | Merge) -> str:
    if isinstance(found, Apart):
        how = "under autocast " if found.by_autocast else ""
        gives = f"{how}{quoted(found.node) or 'this operation'} gives float32"
        mixed = f"a float32 {found.tensor.name} beside a {dtype_in(found.sibling, found.lanes[0])} {found.sibling.name}"
        return f"{gives}, so `{found.kernel}` gets {mixed}"
    if isinstance(found, Joined):
        taken = f"`{ast.unparse(found.pad)}` has the device of `{ast.unparse(found.leader)}` but not its dtype"
        return f"{taken}: joined with half precision, it gives float32"
    if isinstance(found, Rotation):
        return f"the float32 sine and cosine of `{found.angles}` make half-precision `{found.tensor}` float32"
    wide = quoted(found.other) or "what is merged into it"
    return f"`{found.target}` becomes float32 beside float32 {wide}: cast the result back to its dtype"


def _report(node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
    found = suspect.data
    if isinstance(found, Promotion):
        report_promotion(visit, node, suspect)
    elif isinstance(found, Joined):
        _report_padding(visit, node, suspect)
    elif isinstance(found, Rotation):
        _report_cast_back(visit, node, suspect, found.rotated)
    elif isinstance(found, Merge):
        _report_cast_back(visit, node, suspect, found.weight)
    elif isinstance(found, Apart):
        _report_cast_back(visit, node, suspect, _cast_source(found.node))


def _report_padding(visit: Visit, node: cst.CSTNode, suspect: Suspect) -> None:
    """Report a concatenation, with a cast of the constant."""
    join: Joined = suspect.data
    pad = find_expression(visit, node, join.pad)
    dtype = dtype_of_tensor(join.leader)
    if pad is None or dtype is None:
        visit.report(suspect)
        return
    edit = visit.append(pad, f".to({dtype})")
    visit.report(suspect, visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", edit))


def _report_cast_back(visit: Visit, node: cst.CSTNode, suspect: Suspect, source: ast.expr | None) -> None:
    """Report an expression, with a cast back to the dtype of one of its operands where that can be written."""
    dtype = dtype_of_tensor(source) if source is not None else None
    if dtype is None:
        visit.report(suspect)
        return
    edit = visit.append(node, f".to({dtype})")
    visit.report(suspect, visit.fix(Applicability.UNSAFE, "Cast the result back to the dtype of its input", edit))


def _cast_source(node: ast.AST) -> ast.expr | None:
    """The tensor that a call of an operation works on: its first argument, or what it is a method of."""
    if not isinstance(node, ast.Call):
        return None
    if node.args and not isinstance(node.args[0], (ast.Constant, ast.UnaryOp, ast.Starred)):
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None
