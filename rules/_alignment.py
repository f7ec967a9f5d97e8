"""Giving the operands of an operation one dtype: which operand leads, and how the others are cast to its dtype."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.infer.bodies import once_for_each_node
from amplint.infer.dtypes import BITS, FLOATS
from amplint.source import Span

from ._disagreement import find_operand, short_name

if TYPE_CHECKING:
    import libcst as cst

    from amplint.infer.facts import Conflict, FileFacts, Operand
    from amplint.infer.values import Tensor
    from amplint.visit import Visit

_WIDTHS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
VIEWS = frozenset(
    (
        *("t", "view", "reshape", "permute", "transpose", "swapaxes", "swapdims", "movedim", "contiguous", "expand"),
        *("expand_as", "view_as", "unsqueeze", "squeeze", "flatten", "unflatten", "detach", "clone", "repeat"),
        *("narrow", "flip", "roll"),
    )
)
"""Methods that hand on the dtype of their tensor."""
_CASTS = frozenset(("float", "double", "to", "type"))
_PARAMETERS = {
    "torch.nn.LSTM": "weight_ih_l0",
    "torch.nn.GRU": "weight_ih_l0",
    "torch.nn.RNN": "weight_ih_l0",
    "torch.nn.MultiheadAttention": "out_proj.weight",
}
"""Where layers whose parameters have other names than the operation's keep one that always exists."""
_LONGEST_QUOTE = 40


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


def wider(conflict: Conflict) -> tuple[Operand, Operand]:
    """The two operands that differ, the wider one first."""
    left, right = _WIDTHS.get(conflict.left_dtype, 0), _WIDTHS.get(conflict.right_dtype, 0)
    return (conflict.left, conflict.right) if left >= right else (conflict.right, conflict.left)


def of_layer(conflict: Conflict, operand: Operand) -> bool:
    """Whether an operand is a parameter of the layer that the conflict's call calls."""
    return operand.node is not None and operand.node is getattr(conflict.node, "func", None)


def leads(conflict: Conflict, operand: Operand) -> bool:
    """Whether an operand decides the dtype of the others: a parameter, or what the operation writes into."""
    return operand.value.leaf or not _castable(conflict, operand)


def _castable(conflict: Conflict, operand: Operand) -> bool:
    """Whether the operand's expression can be replaced by a cast of it."""
    written = operand.name == "out" or (conflict.op.endswith("_") and operand is conflict.operands[0])
    assigned = isinstance(conflict.node, ast.AugAssign) and operand.node is conflict.node.target
    return operand.node is not None and not written and not assigned and not of_layer(conflict, operand)


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
    if operand.node in _referring(facts):
        return True
    around = _class_around(facts, origin.span)
    if any(facts.span(choice).contains(origin.span) for choice in _choices_in(around)):
        return True
    spelled = ast.unparse(operand.node) if isinstance(operand.node, ast.Attribute) else ""
    return any(names.get(facts.span(value)) != layer for value in _assigned_in(around).get(spelled, ()))


@lru_cache(maxsize=1)
def _called_names(facts: FileFacts) -> dict[Span, str]:
    """What the calls of a file call that its imports resolve, by where the calls lie."""
    return {facts.span(r.call): r.name for r in facts.references if r.call is not None}


@lru_cache(maxsize=1)
def _referring(facts: FileFacts) -> frozenset[ast.AST]:
    """The nodes of a file that its imports resolve."""
    return frozenset(reference.node for reference in facts.references)


@once_for_each_node
def _choices_in(node: ast.AST) -> list[ast.IfExp]:
    return [below for below in ast.walk(node) if isinstance(below, ast.IfExp)]


@once_for_each_node
def _assigned_in(node: ast.AST) -> dict[str, list[ast.expr]]:
    """What is assigned below a node, by the attribute as it is written."""
    found: dict[str, list[ast.expr]] = {}
    for below in ast.walk(node):
        if isinstance(below, ast.Assign):
            for target in below.targets:
                if isinstance(target, ast.Attribute):
                    found.setdefault(ast.unparse(target), []).append(below.value)
    return found


@once_for_each_node
def _classes_in(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _class_around(facts: FileFacts, span: Span) -> ast.AST:
    """The innermost class that a place stands in, else the file."""
    around = [node for node in _classes_in(facts.source.tree) if facts.span(node).contains(span)]
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
    while (inner := _behind_view(node)) is not None:
        node = inner
    return f"{ast.unparse(node)}.dtype" if is_stable(node) else None


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


def alignment(visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand) -> list[Edit] | None:
    """Edits that cast every operand that differs from the leader to its dtype; None where that cannot be written."""
    dtype = dtype_of(visit.facts, conflict, leader)
    if dtype is None:
        return None
    edits = []
    for operand in _followers(visit.facts, conflict, leader):
        expression = find_operand(visit, node, operand) if _castable(conflict, operand) else None
        if expression is None:
            return None
        edits.append(_cast(visit, expression, dtype))
    return edits or None


def same_cast(visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand, trailer: str) -> list[Edit] | None:
    """Edits that put a cast such as ``.float()`` after every operand that differs from the leader."""
    edits = []
    for operand in _followers(visit.facts, conflict, leader):
        expression = find_operand(visit, node, operand) if _castable(conflict, operand) else None
        if expression is None:
            return None
        edits.append(visit.append(expression, trailer))
    return edits or None


def cast_to_lead(
    visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand, trailer: str
) -> list[Edit] | None:
    """Edits that put a cast after every operand that is not sure to have the leader's dtype in every scenario.

    For operations that demand one dtype: wherever one ran before, the casts do nothing. None where an operand has no
    expression of its own.
    """
    edits = []
    for operand in conflict.operands:
        if operand is leader or _is_same(operand, leader) or _agree(operand.value, leader.value):
            continue
        expression = find_operand(visit, node, operand)
        if expression is None:
            return None
        edits.append(visit.append(expression, trailer))
    return edits


def _is_same(a: Operand, b: Operand) -> bool:
    """Whether both are the same variable: ``torch.addmm(total, a, b, out=total)``."""
    return a.node is not None and b.node is not None and ast.dump(a.node) == ast.dump(b.node)


def _agree(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors surely have one dtype, in every scenario."""
    for x, y in zip(a.dtypes, b.dtypes, strict=True):
        followed = x.symbol is not None and x.symbol is y.symbol
        forced = x.exact and y.exact and x.mask == y.mask and not x.assumed and not y.assumed
        if not followed and not forced:
            return False
    return True


def _followers(facts: FileFacts, conflict: Conflict, leader: Operand) -> list[Operand]:
    lanes = lanes_of(facts, conflict)
    return [operand for operand in conflict.operands if operand is not leader and differ(operand, leader, lanes)]


def _cast(visit: Visit, expression: cst.BaseExpression, dtype: str) -> Edit:
    """Cast an expression; a plain cast that it ends in gives way."""
    import libcst as cst

    if isinstance(expression, cst.Call) and isinstance(expression.func, cst.Attribute) and not expression.lpar:
        plain = not expression.args or (len(expression.args) == 1 and _is_dtype(visit, expression.args[0]))
        if expression.func.attr.value in ("float", "double", "half", "bfloat16", "to") and plain:
            start = visit.outer_span(expression.func.value).end
            return Edit(Span(start, visit.span(expression).end), f".to({dtype})")
    return visit.append(expression, f".to({dtype})")


def _is_dtype(visit: Visit, argument: cst.Arg) -> bool:
    """Whether an argument is a dtype that is named: ``torch.float32``, however torch is imported."""
    place = visit.span(argument.value)
    named = argument.keyword is None or argument.keyword.value == "dtype"
    dtypes = {f"torch.{name}" for name in BITS}
    return (
        named
        and not argument.star
        and any(r.name in dtypes and visit.source.span(r.node) == place for r in visit.facts.references)
    )


def written_cast(operand: Operand) -> str | None:
    """The cast that an operand's own expression ends in, but for views of it: ``.float()``, ``.to(torch.float32)``."""
    node = operand.node
    while node is not None and (inner := _behind_view(node)) is not None:
        node = inner
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _CASTS:
        return None
    values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if len(values) != len(node.args) + len(node.keywords) or len(values) > 1:
        return None
    if not all(isinstance(value, ast.Constant) or is_stable(value) for value in values):
        return None
    arguments = ", ".join([*map(ast.unparse, node.args), *map(ast.unparse, node.keywords)])
    return f".{node.func.attr}({arguments})"


def label(facts: FileFacts, conflict: Conflict) -> str:
    """What a reader calls the operation: ``nn.LSTM`` for a layer, else its short name."""
    parameter = next((operand for operand in conflict.operands if of_layer(conflict, operand)), None)
    layer = layer_class(facts, parameter) if parameter is not None else None
    if conflict.elsewhere is not None:
        return f"{short_name(conflict.op)} ({conflict.elsewhere.filename.name}:{conflict.elsewhere.span.start.row})"
    return layer.removeprefix("torch.") if layer is not None else short_name(conflict.op)


def describe(conflict: Conflict, operand: Operand, dtype: str) -> str:
    """``float32 `x```; for a layer's parameter, ``the float16 weight of `self.proj```."""
    text = ast.unparse(operand.node) if operand.node is not None else ""
    quoted = f"`{text}`" if text and len(text) <= _LONGEST_QUOTE else ""
    if of_layer(conflict, operand):
        return f"the {dtype} {operand.name} of {quoted or 'the layer'}"
    return f"{dtype} {quoted or operand.name}"


def disagreement(facts: FileFacts, conflict: Conflict) -> str:
    """``matmul gets float32 `attn` and bfloat16 `v`, but needs one dtype``."""
    left = describe(conflict, conflict.left, conflict.left_dtype)
    right = describe(conflict, conflict.right, conflict.right_dtype)
    return f"{label(facts, conflict)} gets {left} and {right}, but needs one dtype"
