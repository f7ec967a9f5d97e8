"""AMP103: a tensor made without a dtype that meets tensors of another one."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.device_followers import Follower
from amplint.claims.disagreement import suspects_of
from amplint.claims.forgotten_dtype import forgotten
from amplint.claims.made_tensors import EXACT, causes, is_exact, message, names_in
from amplint.claims.operands import dtype_of
from amplint.claims.round_trips import RoundTrip
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.casts import alignment
from amplint.rewriting.nodes import find_call
from amplint.rule import TENSOR_CODE, Addressed, Applicability, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Fix, MadeOperand, Visit

_FREE = EXACT | frozenset(f"torch.{name}() without dtype" for name in ("empty", "full", "rand", "randn"))
"""What may be made in low precision; ranges may not, and neither may what is computed from them."""


class UntypedConstant(Rule):
    """A tensor made without a dtype is float32 and meets half-precision tensors in an operation that wants one dtype.

    What it does
    ------------
    Reports matrix products, linear, convolution and recurrent layers and the other operations that do not promote,
    where one operand comes from `torch.zeros`, `ones`, `eye`, `full`, `randn`, `linspace`, `arange` over floats,
    `torch.tensor` of Python floats and their like without `dtype=`, or from integers made floats by `.float()` or by
    arithmetic (`one_hot(...).float()`, `torch.arange(n) / n`), on whatever way it takes to the operation.

    Also, as a warning, what a feature extractor or numpy makes of a tensor, where it gets the device of that tensor
    back, not its dtype, and is given to a module.

    Also a parameter made on the device of given weights, but without their dtype (`nn.Parameter(torch.zeros(n,
    device=base.weight.device))`): an adapter around a layer that was loaded in half precision stays float32.

    And such a constructor whose tensor goes to compiled code by its address (`data_ptr()`): what reads it there has a
    dtype of its own, and torch's default is another one after `torch.set_default_dtype(torch.bfloat16)`, which
    Lightning calls for `precision="bf16-true"`, for one. That is a warning: no error is raised, the values are wrong.

    Why it is bad
    -------------
    A constructor without a dtype follows neither the model nor its input: it gives torch's default, float32. `device=`
    is passed in nearly all such code, since leaving it out fails at once; the dtype is forgotten until somebody calls
    `model.half()` or loads the weights in bfloat16. Sums and products in between promote the activations to float32 on
    the way without a word, and the error comes up in a layer that is innocent.

    How it shows
    ------------
    ```text
    RuntimeError: expected scalar type Float but found BFloat16
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half
    RuntimeError: Input type (float) and bias type (c10::Half) should be the same
    RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16
    ```

    Example
    -------
    ```python
    rotation = torch.eye(3, device=x.device).expand(len(x), 3, 3)
    return torch.bmm(rotation, x)
    ```
    Use instead:
    ```python
    rotation = torch.eye(3, device=x.device, dtype=x.dtype).expand(len(x), 3, 3)
    return torch.bmm(rotation, x)
    ```

    Fix safety
    ----------
    Safe for `torch.zeros`, `ones` and `eye` that have no other use than this operand, in an operation that autocast
    casts down or leaves alone: their values are the same in every dtype, and where the program ran before the dtypes
    were equal or autocast made them so. Unsafe otherwise: random values are drawn anew in another dtype, and an
    operation that autocast runs in the widest dtype gets a narrower one. The dtype is written where the tensor is made
    if the other operand's is known there. What is computed (a sinusoid, a range) stays in float32 and is cast where it
    is used: in 16 bit, positions past 256 are not told apart any more. Where a tensor's address is taken, the default
    dtype of today is written out, which is unsafe only where the compiled code reads another one.
    """

    code: ClassVar[str] = "AMP103"
    name: ClassVar[str] = "untyped-constant"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("torch", "forward")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class InputTransform(nn.Module):
    def __init__(self, dim=3):
        super().__init__()
        self.dim = dim
        self.regress = nn.Linear(dim, dim * dim)

    def forward(self, points: torch.Tensor):
        offset = self.regress(points.mean(dim=1)).view(-1, self.dim, self.dim)
        identity = torch.eye(self.dim, device=points.device).expand(len(points), -1, -1)
        moved = points.bmm(identity)  # expect
        return moved + points @ offset


def reproduce():
    InputTransform().to(torch.bfloat16)(torch.randn(2, 5, 3, dtype=torch.bfloat16))
""",
            scenario="bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Right(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("rotation", torch.eye(dim))

    def forward(self, x: torch.Tensor, mask: torch.Tensor, index: torch.LongTensor):
        hidden = self.proj(x) @ self.rotation
        scale = torch.tensor(0.5, device=x.device)
        causal = torch.ones(4, 4).tril().bool()
        one_hot = F.one_hot(index, x.shape[-1]).to(x.dtype)
        noise = self.proj(torch.randn_like(x))
        start = torch.zeros(x.shape, device=x.device).type_as(x)
        return torch.where(causal[0, 0], hidden * scale, x) + noise @ start.T @ one_hot + mask.to(x) @ x.new_zeros(8, 8)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for suspect in suspects_of(facts, Kind.CONSTANT):
            yield replace(suspect, causes=causes(suspect.data))
        yield from forgotten(facts)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if not _report_forgotten(visit, node, suspect):
            self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict = suspect.data
        made = conflict.made
        assert made is not None
        visit.report(suspect, _fix(visit, node, conflict, made), message(visit.facts, conflict, made))


def _fix(visit: Visit, node: cst.CSTNode, conflict: Conflict, made: MadeOperand) -> Fix | None:
    other = conflict.right if made.operand is conflict.left else conflict.left
    dtype = dtype_of(visit.facts, conflict, other)
    safety = Applicability.SAFE if is_exact(visit.facts, conflict, made) else Applicability.UNSAFE
    direct = made.operand.value.origin is made.maker and made.maker.what in _FREE
    call = find_call(visit, made.maker) if direct else None
    if dtype is not None and call is not None and _bound_at(visit, conflict, made, dtype):
        edit = visit.add_argument(call, f"dtype={dtype}")
        return visit.fix(safety, "Make it in the dtype of the other operand", edit)
    for leader in (other, made.operand):
        edits = alignment(visit, node, conflict, leader)
        if edits is not None:
            safe = safety if leader is other and len(edits) == 1 else Applicability.UNSAFE
            return visit.fix(safe, "Cast to the dtype of the other operand", *edits)
    return None


def _report_forgotten(visit: Visit, node: cst.Call, suspect: Suspect) -> bool:
    """Report a tensor made without the dtype that it needs, which is written out where it can be; False for any other.

    ``torch.Tensor(...)`` takes no dtype.
    """
    found = suspect.data
    if isinstance(found, RoundTrip):
        visit.report(suspect, _with_dtype(visit, node, f"{found.tensor}.dtype", "Give it the dtype back too"))
    elif isinstance(found, Follower):
        dtype = f"{ast.unparse(found.weight)}.dtype"
        visit.report(suspect, _with_dtype(visit, node, dtype, "Make it in the dtype of those weights"))
    elif isinstance(found, Addressed):
        called = found.node.func if isinstance(found.node, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.attr != "Tensor":
            dtype = f"{called.value.id}.float32"
            visit.report(suspect, _with_dtype(visit, node, dtype, "Write out the dtype that it has by default"))
        else:
            visit.report(suspect)
    else:
        return False
    return True


def _with_dtype(visit: Visit, node: cst.Call, dtype: str, message: str) -> Fix:
    return visit.fix(Applicability.UNSAFE, message, visit.add_argument(node, f"dtype={dtype}"))


def _bound_at(visit: Visit, conflict: Conflict, made: MadeOperand, dtype: str) -> bool:
    """Whether a dtype that is read at the operation is the same where the constant is made.

    That is so for what an argument of the function holds, or ``self``, if nothing rebinds it.
    """
    function = Surroundings.of(visit.facts.source.tree).function(conflict.node)
    if function is None or function is not Surroundings.of(visit.facts.source.tree).function(made.maker.node):
        return False
    root = dtype.split(".", 1)[0].split("[", 1)[0]
    arguments = function.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return root in names and all(name.id != root or isinstance(name.ctx, ast.Load) for name in names_in(function))
