"""The operands of an operation: which of them leads, and how its dtype is written."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BITS, FLOATS, names_of
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.operand import Operand
    from amplint.source import Span

_WIDTHS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
VIEWS = frozenset(
    (
        *("t", "view", "reshape", "permute", "transpose", "swapaxes", "swapdims", "movedim", "contiguous", "expand"),
        *("expand_as", "view_as", "unsqueeze", "squeeze", "flatten", "unflatten", "detach", "clone", "repeat"),
        *("narrow", "flip", "roll"),
    )
)
"""Methods that hand on the dtype of their tensor."""
CASTS = frozenset(("float", "double", "to", "type"))
"""Methods that give a tensor in a dtype that they name."""
_PARAMETERS = {
    "torch.nn.LSTM": "weight_ih_l0",
    "torch.nn.GRU": "weight_ih_l0",
    "torch.nn.RNN": "weight_ih_l0",
    "torch.nn.MultiheadAttention": "out_proj.weight",
}
"""Where layers whose parameters have other names than the operation's keep one that always exists."""


def lanes_of(facts: FileFacts, conflict: Conflict) -> list[int]:
    """The scenarios that a conflict names, by their numbers."""
    return [number for number, scenario in enumerate(facts.scenarios) if scenario.name in conflict.scenarios]


def differ(a: Operand, b: Operand, lanes: list[int]) -> bool:
    """Whether two operands are known to be floating and of different dtypes in one of the scenarios."""
    for number in lanes:
        x, y = a.value.dtypes[number], b.value.dtypes[number]
        same = x.mask == y.mask or (x.symbol is not None and x.symbol is y.symbol)
        if not same and x.mask and y.mask and not (x.mask | y.mask) & ~FLOATS:
            return True
    return False


def known_in(operand: Operand, lanes: list[int]) -> bool:
    """Whether an operand's dtypes are known in some scenarios."""
    return all(operand.value.dtypes[number].known for number in lanes)


def wider(conflict: Conflict) -> tuple[Operand, Operand]:
    """The two operands that differ, the wider one first."""
    left, right = _WIDTHS.get(conflict.left_dtype, 0), _WIDTHS.get(conflict.right_dtype, 0)
    return (conflict.left, conflict.right) if left >= right else (conflict.right, conflict.left)


def of_layer(conflict: Conflict, operand: Operand) -> bool:
    """Whether an operand is a parameter of the layer that the conflict's call calls."""
    return operand.node is not None and operand.node is getattr(conflict.node, "func", None)


def leads(conflict: Conflict, operand: Operand) -> bool:
    """Whether an operand decides the dtype of the others: a parameter, or what the operation writes into."""
    return operand.value.leaf or not castable(conflict, operand)


def castable(conflict: Conflict, operand: Operand) -> bool:
    """Whether the operand's expression can be replaced by a cast of it: not a layer's bias, which may be None."""
    written = operand.name == "out" or (conflict.op.endswith("_") and operand is conflict.operands[0])
    assigned = isinstance(conflict.node, ast.AugAssign) and operand.node is conflict.node.target
    absent = operand.name == "bias" and (operand.value.maybe or isinstance(operand.node, ast.Attribute))
    fixed = written or assigned or absent or of_layer(conflict, operand)
    return operand.node is not None and not fixed


def layer_class(facts: FileFacts, operand: Operand) -> str | None:
    """The qualified name of the layer that holds a parameter, where its constructor stands in this file."""
    origin = operand.value.origin
    if origin is None or origin.filename != str(facts.path):
        return None
    return _called_names(facts).get(origin.span)


def _hidden(facts: FileFacts, operand: Operand, layer: str) -> bool:
    """Whether what is called may not be the layer itself.

    It may be a torch function that calls the layer, a container around it, or, by another assignment of the same
    attribute or the other side of a condition, a layer that has no such parameter (``nn.Identity``).
    """
    origin = operand.value.origin
    if origin is None or operand.node is None:
        return True
    names = _called_names(facts)
    if any(span.contains(origin.span) for span, name in names.items() if name == "torch.nn.Sequential"):
        return True
    if operand.node in _referring(facts) or _is_one_of_several(facts, operand.node):
        return True
    around = _class_around(facts, origin.span)
    if any(facts.span(choice).contains(origin.span) for choice in nodes_of_kind(around, ast.IfExp)):
        return True
    spelled = ast.unparse(operand.node) if isinstance(operand.node, ast.Attribute) else ""
    return any(names.get(facts.span(value)) != layer for value in _assigned_in(around).get(spelled, ()))


def _is_one_of_several(facts: FileFacts, node: ast.expr) -> bool:
    """Whether a loop sets a variable: the layers that it goes through need not be of one class."""
    loops = nodes_of_kind(facts.source.tree, ast.For, ast.AsyncFor, ast.comprehension)
    return isinstance(node, ast.Name) and any(
        name.id == node.id and isinstance(name.ctx, ast.Store)
        for loop in loops
        for name in nodes_of_kind(loop.target, ast.Name)
    )


@lru_cache(maxsize=1)
def _called_names(facts: FileFacts) -> dict[Span, str]:
    """What the calls of a file call that its imports resolve, by where the calls lie."""
    return {facts.span(r.call): r.name for r in facts.references if r.call is not None}


@lru_cache(maxsize=1)
def _referring(facts: FileFacts) -> frozenset[ast.AST]:
    """The nodes of a file that its imports resolve."""
    return frozenset(reference.node for reference in facts.references)


@once_for_each_node
def _assigned_in(node: ast.AST) -> dict[str, list[ast.expr]]:
    """What is assigned below a node, by the attribute as it is written."""
    found: dict[str, list[ast.expr]] = {}
    for below in nodes_of_kind(node, ast.Assign):
        for target in below.targets:
            if isinstance(target, ast.Attribute):
                found.setdefault(ast.unparse(target), []).append(below.value)
    return found


def _class_around(facts: FileFacts, span: Span) -> ast.AST:
    """The innermost class that a place stands in, else the file."""
    around = [node for node in nodes_of_kind(facts.source.tree, ast.ClassDef) if facts.span(node).contains(span)]
    return around[-1] if around else facts.source.tree


def dtype_of(facts: FileFacts, conflict: Conflict, operand: Operand) -> str | None:
    """An expression for an operand's dtype, None where there is none that may be evaluated again."""
    if not of_layer(conflict, operand):
        return dtype_of_tensor(operand.node) if operand.node is not None else None
    layer = layer_class(facts, operand)
    if layer is None or operand.node is None or not is_stable(operand.node) or _hidden(facts, operand, layer):
        return None
    return f"{ast.unparse(operand.node)}.{_PARAMETERS.get(layer, operand.name)}.dtype"


def dtype_of_tensor(node: ast.expr) -> str | None:
    """An expression for the dtype of a tensor's expression, None where that is not to be evaluated again."""
    while (inner := _behind_view(node) or _beside_integer(node)) is not None:
        node = inner
    return f"{ast.unparse(node)}.dtype" if is_stable(node) else None


def _beside_integer(node: ast.expr) -> ast.expr | None:
    """What an integer that is written out is added to or multiplied with, which keeps its dtype: ``x`` of ``1 - x``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        return None
    sides = (node.left, node.right)
    numbers = [type(side.value) is int for side in sides if isinstance(side, ast.Constant)]
    others = [side for side in sides if not isinstance(side, ast.Constant)]
    return others[0] if numbers == [True] else None


def _behind_view(node: ast.expr) -> ast.expr | None:
    """The tensor that an expression is a view or a part of; None where it is neither.

    A number or a name as index may pick from a list as well as from a tensor, so it stays.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS:
        retyped = any(isinstance(argument, ast.Attribute) and argument.attr in BITS for argument in node.args)
        return None if retyped else node.func.value
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return node.value
    return None


def is_stable(node: ast.expr) -> bool:
    """A name, attributes or items of one: reading it twice changes nothing."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not (isinstance(node.slice, ast.Constant) or is_stable(node.slice)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def dtype_in(operand: Operand, lane: int) -> str:
    """The name of an operand's dtype in one scenario, by its number."""
    return names_of(operand.value.dtypes[lane].named)[0]


def known_floating(operand: Operand) -> bool:
    """Whether an operand is known to be floating in every scenario."""
    return all(lane.known and not lane.mask & ~FLOATS for lane in operand.value.dtypes)


def sure_floating(operand: Operand) -> bool:
    """Whether an operand is floating in every scenario by what the code says, not by what callers are taken to pass."""
    return known_floating(operand) and not any(lane.assumed for lane in operand.value.dtypes)


def written_cast(operand: Operand) -> str | None:
    """The cast that an operand's own expression ends in, but for views of it: ``.float()``, ``.to(torch.float32)``."""
    node = operand.node
    while node is not None and (inner := _behind_view(node)) is not None:
        node = inner
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in CASTS:
        return None
    values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if len(values) != len(node.args) + len(node.keywords) or len(values) > 1:
        return None
    if not all(isinstance(value, ast.Constant) or is_stable(value) for value in values):
        return None
    arguments = ", ".join([*map(ast.unparse, node.args), *map(ast.unparse, node.keywords)])
    return f".{node.func.attr}({arguments})"


def short_name(op: str) -> str:
    """An operation's name without the module that it comes from."""
    return op.rsplit(".", 1)[-1]
