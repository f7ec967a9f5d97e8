"""AMP101: query, key and value of different dtypes at an attention call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import describe, disagreement, label, suspects_of
from amplint.claims.operands import differ, known_in, lanes_of, sure_floating, wider
from amplint.rewriting.casts import alignment
from amplint.rule import Applicability, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Operand, Visit

_INPUTS = ("query", "key", "value")
_MASKS = ("attn_mask", "key_padding_mask")


class AttentionOperands(Rule):
    """Query, key and value of an attention call have different dtypes.

    What it does
    ------------
    Reports `F.scaled_dot_product_attention` and `F.multi_head_attention_forward` whose query, key and value do not have
    one dtype in a scenario, and the same of the attention kernels of flash-attn, xformers, natten and sageattention,
    which autocast does not act on; those of them that take float16 and bfloat16 alone must not get float32 either. What
    is said of another library's kernel is cited from its source, and a warning. `nn.MultiheadAttention` is AMP104's.

    Why it is bad
    -------------
    Attention raises on mixed dtypes. Usually two of the three have a history that the third does not share: key and
    value come from a cache that was allocated without a dtype, or that holds the compute dtype, while the query went
    through a norm or a rotary embedding that promotes to float32. Filling a cache by slice assignment casts without a
    word, so nothing shows before the cache is read, often not before the second call. Autocast would cast all three;
    the failure is one of half-precision models without autocast, and of regions that switch it off.

    How it shows
    ------------
    ```text
    RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype:
    c10::BFloat16 and value.dtype: c10::BFloat16 instead.
    ```

    Example
    -------
    ```python
    cache = torch.zeros(batch, max_len, dim, device=x.device)  # float32 in a bfloat16 model
    cache[:, : x.shape[1]] = k
    out = F.scaled_dot_product_attention(q, cache, v)
    ```
    Use instead:
    ```python
    cache = torch.zeros(batch, max_len, dim, device=x.device, dtype=k.dtype)
    cache[:, : x.shape[1]] = k
    out = F.scaled_dot_product_attention(q, cache, v)
    ```

    Fix safety
    ----------
    Unsafe: attention then computes in another precision. The fix casts the operand that differs from the other two: a
    query to the dtype of key and value, where they may come from a cache that is too large to be cast at every step; a
    key or value to the query's. A mask is not touched unless it is sure to be floating: a boolean mask cast to a float
    becomes an additive one. That the operands drifted apart often is better cured where it happened, which the causes
    show.
    """

    code: ClassVar[str] = "AMP101"
    name: ClassVar[str] = "attention-operands"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = (
        *("scaled_dot_product_attention", "multi_head_attention_forward"),
        *("flash_attn_", "memory_efficient_attention", "natten", "sageattn"),
    )
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim=8, max_len=16):
        super().__init__()
        self.max_len = max_len
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        keys = torch.zeros(x.shape[0], self.max_len, k.shape[-1], device=x.device)
        values = torch.zeros(x.shape[0], self.max_len, v.shape[-1], device=x.device)
        keys[:, : x.shape[1]] = k
        values[:, : x.shape[1]] = v
        return F.scaled_dot_product_attention(q, keys[:, : x.shape[1]], values[:, : x.shape[1]])  # expect


def reproduce():
    CachedAttention().to(torch.bfloat16)(torch.randn(2, 4, 8, dtype=torch.bfloat16))
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


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return (x * cos + torch.cat([-right, left], dim=-1) * sin).to(x.dtype)


class CachedAttention(nn.Module):
    def __init__(self, dim=8, max_len=16):
        super().__init__()
        self.max_len = max_len
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        angles = torch.linspace(0.0, 1.0, x.shape[1])[:, None] * torch.ones(1, q.shape[-1])
        q, k = rotate(q, angles.cos(), angles.sin()), rotate(k, angles.cos(), angles.sin())
        keys = torch.zeros(x.shape[0], self.max_len, k.shape[-1], device=x.device, dtype=k.dtype)
        values = torch.zeros(x.shape[0], self.max_len, v.shape[-1], device=x.device).type_as(v)
        keys[:, : x.shape[1]] = k
        values[:, : x.shape[1]] = v
        bias = torch.zeros(x.shape[1], x.shape[1])
        return F.scaled_dot_product_attention(q, keys[:, : x.shape[1]], values[:, : x.shape[1]], attn_mask=bias)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return suspects_of(facts, Kind.ATTENTION)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict = suspect.data
        if conflict.left is conflict.right:
            given = describe(conflict, conflict.left, conflict.left_dtype)
            visit.report(
                suspect, message=f"{label(visit.facts, conflict)} takes float16 and bfloat16 only, not {given}"
            )
            return
        message = _message(visit.facts, conflict)
        cast = replace(
            conflict, operands=tuple(o for o in conflict.operands if o.name not in _MASKS or sure_floating(o))
        )
        for leader in _leaders(visit.facts, conflict):
            edits = alignment(visit, node, cast, leader)
            if edits is not None:
                fix = visit.fix(Applicability.UNSAFE, f"Cast to the dtype of the {leader.name}", *edits)
                visit.report(suspect, fix, message)
                return
        visit.report(suspect, message=message)


def _inputs(conflict: Conflict) -> dict[str, Operand]:
    return {operand.name: operand for operand in conflict.operands if operand.name in _INPUTS}


def _leaders(facts: FileFacts, conflict: Conflict) -> list[Operand]:
    """The operands whose dtype the others should get, the best first: two that agree, and of those the key's.

    A kernel that takes no query gets all in the dtype of the narrower one.
    """
    pair = (conflict.left, conflict.right)
    inputs = _inputs(conflict)
    outside = [operand for operand in pair if operand.name not in _INPUTS]
    if outside and not inputs.keys() & {"query", "key"}:
        return [wider(conflict)[1]]
    if outside:
        return [operand for operand in outside if operand.value.leaf][:1]
    lanes = lanes_of(facts, conflict)
    if len(inputs) < len(_INPUTS) or not all(known_in(operand, lanes) for operand in inputs.values()):
        return []
    query, key, value = (inputs[name] for name in _INPUTS)
    if not differ(key, value, lanes):
        return [key, value]
    if not differ(query, key, lanes):
        return [query, key]
    return [query, value] if not differ(query, value, lanes) else []


def _message(facts: FileFacts, conflict: Conflict) -> str:
    """``scaled_dot_product_attention gets float32 query and bfloat16 key and value, but needs one dtype for all``."""
    first = lanes_of(facts, conflict)[:1]
    inputs = _inputs(conflict)
    odd = [
        (operand, other)
        for operand, other in ((conflict.left, conflict.right), (conflict.right, conflict.left))
        if all(not differ(third, other, first) for third in inputs.values() if third is not operand)
        and all(known_in(third, first) for third in inputs.values())
    ]
    if len(inputs) < len(_INPUTS) or len(odd) != 1 or not {o.name for o in odd[0]} <= set(_INPUTS):
        return disagreement(facts, conflict)
    operand, other = odd[0]
    dtypes = {id(conflict.left): conflict.left_dtype, id(conflict.right): conflict.right_dtype}
    rest = " and ".join(name for name in _INPUTS if name != operand.name)
    return (
        f"{label(facts, conflict)} gets {dtypes[id(operand)]} {operand.name} but {dtypes[id(other)]} {rest}, "
        "and needs one dtype for all three"
    )
