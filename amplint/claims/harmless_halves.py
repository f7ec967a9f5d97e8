"""Casts to a 16-bit dtype by name of which nothing shows that they lose what the other 16-bit dtype would keep.

float16 has more bits than bfloat16: a value of a bfloat16 model loses in it only where it is larger than 65504. And
bfloat16 has a larger range than float16: some casts are there for it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import uses_behind
from amplint.infer.lattice.dtypes import BITS, BOOL
from amplint.infer.names.taken_from import TakenFrom
from amplint.infer.torch_model.attention_kernels import KERNEL_NAMES
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.claims.named_half import NamedHalf
    from amplint.claims.surroundings import Surroundings
    from amplint.finding import Doubt
    from amplint.infer.state.facts import CastCall, FileFacts


_FLOAT32 = BITS["float32"]
_ASKS_AUTOCAST = frozenset(("is_autocast_enabled", "is_autocast_cpu_enabled"))
_UNBOUNDED = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_ATTENTION = frozenset(("scaled_dot_product_attention", *KERNEL_NAMES))
_CASTS = ("to", "type", "type_as")
_MAX_VARIABLES = 3


def harmless_doubts(
    facts: FileFacts,
    around: Surroundings,
    half: NamedHalf,
    cast: CastCall | None,
    tests: Sequence[tuple[ast.expr, bool]],
) -> Iterator[Doubt]:
    """Whether a cast by name keeps what matters, as far as the function that it is in shows.

    - What another package's function takes may have to have the dtype.
    - Masks hold 0 and 1, or minus infinity, in any dtype.
    - To float16 where autocast is on: the layers cast again.
    - To float16 for an attention whose result is cast back: it is an average of values, no sum that could overflow.
    - To bfloat16 what holds an exponential, which float16 would not hold.
    - To bfloat16 what the function made in float32, whatever the model runs in: all models get the same rounded table.
    """
    if half.receiver is None:
        return
    if cast is not None and all(lane.mask == BOOL for lane in cast.tensor.dtypes):
        yield doubts.HOLDS_A_MASK
    if _is_given_away(facts, around, half.node):
        yield doubts.GIVEN_AWAY
    if half.dtype == "float16":
        if any(answer and _asks_autocast(around, test) for test, answer in tests):
            yield doubts.LAYERS_CAST_AGAIN
        if _is_for_attention(around, half.node):
            yield doubts.ATTENTION_CAST_BACK
        return
    if _is_made_wide(cast):
        yield doubts.MADE_WIDE
    if _holds_exponential(around, half.receiver):
        yield doubts.HOLDS_EXPONENTIAL


def _asks_autocast(around: Surroundings, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and around.called(test) in _ASKS_AUTOCAST


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
        if isinstance(part, ast.Call) and around.called(part) in _UNBOUNDED:
            return True
        value = around.only_value(part) if isinstance(part, ast.Name) and variables else None
        if value is not None and _holds_exponential(around, value, variables - 1):
            return True
    return False


def _is_given_away(facts: FileFacts, around: Surroundings, node: ast.Call) -> bool:
    """Whether a function takes the cast tensor that belongs neither to torch nor to the project.

    The attention kernels that are known take both 16-bit dtypes.
    """
    for taken in (node, *_kept(around, node)):
        call = _taking(around, taken)
        imported = around.imported(call.func) if call is not None else None
        if call is None or imported is None or around.is_torch(call.func) or around.called(call) in KERNEL_NAMES:
            continue
        if facts.taken_from(*imported) is TakenFrom.ELSEWHERE:
            return True
    return False


def _is_for_attention(around: Surroundings, node: ast.Call) -> bool:
    """Whether only attention gets the cast tensor, itself or among others in a variable, and its result is cast."""
    uses = _kept(around, node)
    return _is_attended(around, node) or (bool(uses) and all(_is_attended(around, use) for use in uses))


def _kept(around: Surroundings, node: ast.Call) -> list[ast.Name]:
    """The uses of the variable that a call's result is assigned to, alone or as part of a value."""
    statement, function = around.statement(node)[0], around.function(node)
    if not isinstance(statement, ast.Assign) or function is None or len(statement.targets) != 1:
        return []
    (target,) = statement.targets
    return list(uses_behind(function, target.id, statement.value)) if isinstance(target, ast.Name) else []


def _taking(around: Surroundings, node: ast.expr) -> ast.Call | None:
    """The call that an expression is an argument of."""
    parent = around.parent(node)
    if isinstance(parent, ast.Starred | ast.keyword):
        parent = around.parent(parent)
    return parent if isinstance(parent, ast.Call) and parent.func is not node else None


def _is_attended(around: Surroundings, node: ast.expr) -> bool:
    """Whether an expression is an argument of an attention whose result is cast at once."""
    call = _taking(around, node)
    back = around.parent(call) if call is not None and around.called(call) in _ATTENTION else None
    return isinstance(back, ast.Attribute) and back.attr in _CASTS
