"""Tensors that got their dtype where they were made: what made them, what became of them, whether they are exact."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.disagreement import disagreement
from amplint.claims.surroundings import Surroundings
from amplint.infer.lattice.values import Made
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.torch_ops import LOWER, find_op

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.finding import Cause
    from amplint.infer.state.facts import FileFacts, Promotion
    from amplint.infer.state.operand import MadeOperand

_LONGEST_QUOTE = 40
_LONGEST = 120
"""Characters of a message in the common case; what does not fit is told by the causes."""
_KEPT = {
    "attribute": ", in a plain attribute, which .half() and .to() pass over",
    "buffer": ", in a buffer",
}
EXACT = frozenset(f"torch.{name}() without dtype" for name in ("zeros", "ones", "eye"))
"""What makes only values that every floating dtype holds."""
_VIEWS = frozenset(("expand", "view", "reshape", "repeat", "unsqueeze", "squeeze", "t", "transpose", "permute", "to"))


def because(text: str, reason: str) -> str:
    """A message with its reason, where the two are short enough to be read at a glance."""
    return f"{text}: {reason}" if len(text) + len(reason) + 2 <= _LONGEST else text


def reason(made: MadeOperand) -> str:
    """Why a tensor has the dtype that it has: ``torch.eye() is float32 by default``."""
    maker = made.maker
    text = quoted(maker.node) or "what it is computed from"
    if maker.made in (Made.CONVERTED, Made.WRITTEN):
        return f"{text} is always float32"
    if maker.what.startswith("torch.") and maker.what.endswith("without dtype"):
        text = f"{maker.what.split('(', 1)[0]}()"
    return f"{text} is float32 by default"


def message(facts: FileFacts, conflict: Conflict, made: MadeOperand) -> str:
    """Which operands differ, and why the one that was made has its dtype."""
    return because(disagreement(facts, conflict), reason(made))


def promoted(promotion: Promotion) -> str:
    """Which operand promotes which, what becomes of that, and why."""
    narrow = quoted(promotion.narrow.node) or promotion.narrow.name
    wide = quoted(promotion.wide.node) or promotion.wide.name
    if promotion.sink == "parameter":
        return f"under autocast selecting from the float32 parameter {wide} makes the half-precision {narrow} float32"
    if promotion.upcast is not None and promotion.made is None:
        why = f"{quoted(promotion.upcast.node) or 'a cast'} is not undone"
    else:
        why = reason(promotion.made) if promotion.made is not None else "a parameter stays float32"
    what = "the module returns float32" if promotion.sink == "returned" else "what replaces it stays float32"
    return because(f"float32 {wide} promotes half-precision {narrow}, and {what}", why)


def causes(conflict: Conflict) -> tuple[Cause, ...]:
    """The causes of a conflict, that of the tensor that was made with what keeps it."""
    made = conflict.made
    if made is None or made.kept is None:
        return conflict.causes
    kept = _KEPT[made.kept]
    maker = (made.maker.source.path, made.maker.span)
    return tuple(
        replace(cause, message=cause.message + kept) if (cause.filename, cause.span) == maker else cause
        for cause in conflict.causes
    )


def quoted(node: ast.AST | None) -> str:
    """An expression in backticks; nothing for a long one."""
    text = ast.unparse(node) if node is not None else ""
    return f"`{text}`" if text and len(text) <= _LONGEST_QUOTE else ""


def is_exact(facts: FileFacts, conflict: Conflict, made: MadeOperand) -> bool:
    """Whether the constant's values are exact in every dtype, and no other use or cast sees its dtype."""
    op = find_op(conflict.op)
    if made.maker.what not in EXACT or made.operand.value.origin is not made.maker or op is None:
        return False
    if not set(op.policy.values()) <= {LOWER}:
        return False
    maker, node = made.maker.node, made.operand.node
    if not isinstance(maker, ast.Call) or any(keyword.arg in (None, "requires_grad") for keyword in maker.keywords):
        return False
    return node is not None and (_is_view_of(node, maker) or _only_use(facts, node, maker))


def _only_use(facts: FileFacts, node: ast.expr, maker: ast.Call) -> bool:
    """Whether an operand is a variable that holds a constant, and is read and written nowhere else."""
    function = Surroundings.of(facts.source.tree).function(node)
    root = node
    while not isinstance(root, ast.Name):
        inner = _viewed(root)
        if inner is None:
            return False
        root = inner
    if function is None or function is not Surroundings.of(facts.source.tree).function(maker):
        return False
    uses = [name for name in names_in(function) if name.id == root.id]
    assigned = [statement for statement in nodes_of_kind(function, ast.Assign) if _is_view_of(statement.value, maker)]
    return len(uses) == 2 and len(assigned) == 1 and assigned[0].targets[0] in uses


def _is_view_of(node: ast.expr, maker: ast.Call) -> bool:
    while node is not maker:
        inner = _viewed(node)
        if inner is None:
            return False
        node = inner
    return True


def _viewed(node: ast.expr) -> ast.expr | None:
    """What a method or index hands on with its values as they are."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        return node.func.value
    return node.value if isinstance(node, ast.Subscript) else None


def names_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Name]:
    """Every name that is read or bound below a function."""
    return nodes_of_kind(function, ast.Name)
