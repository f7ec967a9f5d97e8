"""Casts to a 16-bit dtype by name of which nothing shows that they lose what the other 16-bit dtype would keep.

float16 has more bits than bfloat16: a value of a bfloat16 model loses in it only where it is larger than 65504. And
bfloat16 has a larger range than float16: some casts are there for it.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.infer.dtypes import BITS
from amplint.judge import doubts

from ._choices import called, uses_behind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Doubt
    from amplint.infer.facts import CastCall

    from ._named_half import NamedHalf
    from ._surroundings import Surroundings

_FLOAT32 = BITS["float32"]
_ASKS_AUTOCAST = frozenset(("is_autocast_enabled", "is_autocast_cpu_enabled"))
_UNBOUNDED = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_MASK = re.compile(r"(^|_)masks?(_|$)")
_ATTENTION = re.compile(r"attention|attn")
_CASTS = ("to", "type", "type_as")
_MAX_VARIABLES = 3


def harmless_doubts(
    around: Surroundings, half: NamedHalf, cast: CastCall | None, tests: Sequence[tuple[ast.expr, bool]]
) -> Iterator[Doubt]:
    """Whether a cast by name keeps what matters, as far as the function that it is in shows.

    - Masks hold 0 and 1, or minus infinity, in any dtype.
    - To float16 where autocast is on: the layers cast again.
    - To float16 for an attention whose result is cast back: it is an average of values, no sum that could overflow.
    - To bfloat16 what holds an exponential, which float16 would not hold.
    - To bfloat16 what the function made in float32, whatever the model runs in: all models get the same rounded table.
    """
    if half.receiver is None:
        return
    if _is_mask(half.receiver):
        yield doubts.HOLDS_A_MASK
    if half.dtype == "float16":
        if any(answer and _asks_autocast(test) for test, answer in tests):
            yield doubts.LAYERS_CAST_AGAIN
        if _is_for_attention(around, half.node):
            yield doubts.ATTENTION_CAST_BACK
        return
    if _is_made_wide(cast):
        yield doubts.MADE_WIDE
    if _holds_exponential(around, half.receiver):
        yield doubts.HOLDS_EXPONENTIAL


def _is_mask(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return bool(_MASK.search(name))


def _asks_autocast(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and called(test) in _ASKS_AUTOCAST


def _is_made_wide(cast: CastCall | None) -> bool:
    """Whether what is cast is float32 in all scenarios, and computed of nothing but tensors that the code makes."""
    if cast is None or any(lane.mask != _FLOAT32 for lane in cast.tensor.dtypes):
        return False
    pending = [cast.tensor.origin]
    while pending:
        origin = pending.pop()
        if origin is None or origin.placed or origin.parameter or not (origin.parents or origin.made):
            return False
        pending += origin.parents
    return True


def _holds_exponential(around: Surroundings, node: ast.expr, variables: int = _MAX_VARIABLES) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and called(part) in _UNBOUNDED:
            return True
        value = around.only_value(part) if isinstance(part, ast.Name) and variables else None
        if value is not None and _holds_exponential(around, value, variables - 1):
            return True
    return False


def _is_for_attention(around: Surroundings, node: ast.Call) -> bool:
    """Whether only attention gets the cast tensor, itself or among others in a variable, and its result is cast."""
    statement, _ = around.statement(node)
    if _is_attended(around, node):
        return True
    function = around.function(node)
    if not isinstance(statement, ast.Assign) or function is None:
        return False
    (target, *others) = statement.targets
    if others or not isinstance(target, ast.Name):
        return False
    uses = list(uses_behind(function, target.id, statement.value))
    return bool(uses) and all(_is_attended(around, use) for use in uses)


def _is_attended(around: Surroundings, node: ast.expr) -> bool:
    """Whether an expression is an argument of an attention whose result is cast at once."""
    parent = around.parent(node)
    if isinstance(parent, ast.Starred | ast.keyword):
        parent = around.parent(parent)
    if not isinstance(parent, ast.Call) or parent.func is node or not _ATTENTION.search(called(parent)):
        return False
    back = around.parent(parent)
    return isinstance(back, ast.Attribute) and back.attr in _CASTS
