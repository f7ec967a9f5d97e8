"""AMP102: a hardcoded upcast of an operand of a matrix product."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import describe, disagreement, label, suspects_of
from amplint.claims.idle_upcasts import idle_doubts
from amplint.claims.operands import leads, wider, written_cast
from amplint.rewriting.casts import alignment, same_cast
from amplint.rule import TENSOR_CODE, Applicability, Cause, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, Edit, FileFacts, Visit

_ADVICE = "torch.autocast(device_type, enabled=False) around it keeps the upcast"


class UpcastMatmulOperand(Rule):
    """A hardcoded upcast reaches an operand of a matrix product, which raises, or autocast undoes the upcast.

    What it does
    ------------
    Reports matrix products, convolutions and layers with an operand that `.float()`, `.double()`, `.to(torch.float32)`
    or `softmax(..., dtype=torch.float32)` lifted out of the dtype that the other operand has. Under autocast these
    operations cast their operands back down; there the rule reports an upcast as wasted where all that is multiplied
    was made float32: beside a parameter, or an operand in low precision, a cast may only make a mask fit.

    A wasted upcast is shown with `--pedantic` alone where no module is seen to run the function, which does not name
    autocast either, or where nothing is left of float32 anyway: the result is cast to the dtype of an argument at once.

    Why it is bad
    -------------
    Code with such a cast works in float32 and, thanks to autocast, in mixed precision, and raises once the weights are
    half: `model.half()`, `torch_dtype=torch.bfloat16`, FSDP or DeepSpeed in 16 bit. Under autocast it does not do what
    it says: a logit or a similarity that was to be computed in float32 is computed in float16 or bfloat16.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: expected m1 and m2 to have the same dtype, but got: float != c10::Half
    ```
    Under autocast not at all: the result is low precision.

    Example
    -------
    ```python
    attn = F.softmax(scores, dim=-1, dtype=torch.float32)
    out = self.proj(attn @ v)
    with torch.autocast("cuda"):
        similarity = q.float() @ k.float().T  # float16 all the same
    ```
    Use instead:
    ```python
    attn = F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype)
    out = self.proj(attn @ v)
    with torch.autocast("cuda", enabled=False):
        similarity = q.float() @ k.float().T
    ```

    Fix safety
    ----------
    Unsafe: the product is then computed in another dtype. Where a parameter is the other operand, the upcast one is
    cast to its dtype. Of two other tensors under an autocast that the code switched off, the one that was not upcast
    gets the same cast if that is written in the operand itself, so that the precision asked for is kept; otherwise the
    upcast one goes back to the other's dtype, since autocast would undo a second upcast as it undid the first. For an
    upcast that autocast undoes there is no fix: whether float32 was needed here only its author knows. If it was, put
    the operation under `torch.autocast(device_type, enabled=False)`; if not, drop the cast.
    """

    code: ClassVar[str] = "AMP102"
    name: ClassVar[str] = "upcast-matmul-operand"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("torch", "forward")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.proj = nn.Linear(dim, 4)

    def forward(self, x: torch.Tensor):
        hidden = self.norm(x)
        return self.proj(hidden.float())  # expect


def reproduce():
    Head().half()(torch.randn(2, 8, dtype=torch.float16))
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)).float()
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).type(v.dtype)
        return self.out(weights @ v)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for suspect in suspects_of(facts, Kind.UPCAST, Kind.UNDONE_UPCAST):
            conflict: Conflict = suspect.data
            if conflict.kind is Kind.UPCAST:
                yield suspect
            else:
                advice = Cause(facts.path, suspect.span, _ADVICE)
                suspect = replace(suspect, causes=(*suspect.causes, advice))
                yield suspect.doubted(*idle_doubts(facts, conflict))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict = suspect.data
        if conflict.kind is Kind.UNDONE_UPCAST:
            visit.report(suspect, message=_undone(visit.facts, conflict))
            return
        message = disagreement(visit.facts, conflict)
        found = _fix(visit, node, conflict)
        if found is None:
            visit.report(suspect, message=message)
            return
        edits, text = found
        visit.report(suspect, visit.fix(Applicability.UNSAFE, text, *edits), message)


def _fix(visit: Visit, node: cst.CSTNode, conflict: Conflict) -> tuple[list[Edit], str] | None:
    upcast, other = wider(conflict)
    kept = _autocast_left(visit.facts, conflict) and not leads(conflict, other)
    trailer = written_cast(upcast) if kept else None
    edits = same_cast(visit, node, conflict, upcast, trailer) if trailer is not None else None
    if edits is not None:
        return edits, "Cast the other operand up as well"
    edits = alignment(visit, node, conflict, other)
    if edits is not None:
        return edits, "Cast the upcast operand to the dtype of the other"
    edits = alignment(visit, node, conflict, upcast)
    return (edits, "Cast the other operand up as well") if edits is not None else None


def _autocast_left(facts: FileFacts, conflict: Conflict) -> bool:
    """Whether it fails under autocast too: then the operation is where the code switched autocast off."""
    return any(scenario.autocast is not None and scenario.name in conflict.scenarios for scenario in facts.scenarios)


def _undone(facts: FileFacts, conflict: Conflict) -> str:
    """``matmul runs in low precision: autocast casts float32 `q.float()` back``."""
    upcast = describe(conflict, conflict.left, conflict.left_dtype)
    return f"{label(facts, conflict)} runs in low precision: autocast casts {upcast} back"
