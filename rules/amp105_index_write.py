"""AMP105: rows written by index into a tensor of another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import describe, suspects_of
from amplint.claims.operands import dtype_of, known_floating, short_name
from amplint.rewriting.nodes import find_operand
from amplint.rule import TENSOR_CODE, Applicability, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Visit


class IndexWrite(Rule):
    """An index write gets rows of another dtype than the tensor it writes into.

    What it does
    ------------
    Reports `x[index] = y`, `index_add_`, `index_copy_`, `index_put_`, `scatter*_`, `masked_scatter_` and `put_`, and
    their out-of-place forms, where the source and the destination have different floating dtypes.

    Why it is bad
    -------------
    These operations raise. Autocast does not help: it never casts for in-place forms, and most of these names are on no
    autocast list at all. Assignment by slice or by number looks alike and is no hazard: it casts silently.

    How it shows
    ------------
    ```text
    RuntimeError: index_add_(): self (Float) and source (BFloat16) must have the same scalar type
    RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and
    BFloat16 for the source.
    ```

    Example
    -------
    ```python
    out = torch.zeros(n, dim, device=x.device)
    out.index_add_(0, index, self.expert(x))  # bfloat16 under autocast
    ```
    Use instead:
    ```python
    out = torch.zeros(n, dim, device=x.device)
    out.index_add_(0, index, self.expert(x).to(out.dtype))
    ```

    Fix safety
    ----------
    Casting the source to the destination's dtype does nothing where the program ran before, since the dtypes were equal
    there. The fix is safe for the in-place forms when the source is known to be a tensor and the destination to be
    floating. It is unsafe for the out-of-place forms, some of which autocast promotes.
    """

    code: ClassVar[str] = "AMP105"
    name: ClassVar[str] = "index-write"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("index_", "scatter", "put_", "] =", "]=")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.expert = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.Tensor):
        out = torch.zeros(16, 8, device=x.device)
        out.index_add_(0, index, self.expert(x))  # expect
        return out


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Experts()(torch.randn(4, 8), torch.arange(4))
""",
            scenario="autocast-bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.expert = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.Tensor):
        out = torch.zeros(16, 8, device=x.device)
        out.index_add_(0, index, self.expert(x).to(out.dtype))
        out[:4] = self.expert(x)
        out[0] = self.expert(x)[0]
        out[index] = 1.5
        return out
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return suspects_of(facts, Kind.INDEX_WRITE)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_Assign(self, node: cst.Assign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict = suspect.data
        destination, source = conflict.left, conflict.right
        dtype = dtype_of(visit.facts, conflict, destination)
        written = find_operand(visit, node, source)
        rows = describe(conflict, source, conflict.right_dtype)
        message = f"{short_name(conflict.op)} writes {rows} into {describe(conflict, destination, conflict.left_dtype)}"
        if dtype is None or written is None:
            visit.report(suspect, message=message)
            return
        floating = known_floating(destination)
        safe = floating and not source.value.maybe and short_name(conflict.op).endswith("_")
        fix = visit.fix(
            Applicability.SAFE if safe else Applicability.UNSAFE,
            "Cast the source to the destination's dtype",
            visit.append(written, f".to({dtype})"),
        )
        visit.report(suspect, fix, message)
