"""What is computed in float32 for its range or sum, taken out of it; and float32 put where it does not belong."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from mutants.operators.casts import drop
from mutants.operators.operator import Operator
from mutants.operators.spelling import (
    ATTENTION,
    REDUCTIONS,
    UNSUPPORTED,
    called,
    in_parentheses,
    is_torch,
    is_upcast,
    operands,
    receiver,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.operators.operator import Edits
    from mutants.sources import File


def _upcasts(file: File) -> Iterator[ast.Call]:
    for call in file.calls():
        if is_upcast(file, call):
            yield call


def _consumer(file: File, cast: ast.Call) -> str:
    """The operation that takes the cast's result directly: as a method, or as an argument."""
    above = file.parents[cast]
    if isinstance(above, ast.Attribute) and isinstance(file.parents[above], ast.Call):
        return above.attr
    if isinstance(above, ast.keyword):
        above = file.parents[above]
    return called(above) if isinstance(above, ast.Call) else ""


def _reduction(file: File) -> Edits:
    for cast in _upcasts(file):
        if _consumer(file, cast) in REDUCTIONS:
            yield (drop(file, cast),)


def _unsupported(file: File) -> Edits:
    for cast in _upcasts(file):
        if _consumer(file, cast) in UNSUPPORTED:
            yield (drop(file, cast),)


def _reduction_dtype(file: File) -> Edits:
    """``softmax(x, dtype=torch.float32)`` without its dtype."""
    for call in file.calls():
        if called(call) in REDUCTIONS:
            for keyword in call.keywords:
                if keyword.arg == "dtype" and file.name(value_of(keyword)) in ("torch.float32", "torch.float"):
                    yield (file.without_argument(call, keyword),)


def _statement(file: File) -> Edits:
    """``x = x.float()``, or a float32 copy under another name, taken as it is."""
    for cast in _upcasts(file):
        above = file.parents[cast]
        if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is cast:
            yield (drop(file, cast),)


def _arithmetic(file: File) -> Edits:
    """The upcast of a term or factor, as of a residual."""
    for cast in _upcasts(file):
        if isinstance(file.parents[cast], (ast.BinOp, ast.UnaryOp, ast.Compare)):
            yield (drop(file, cast),)


def _other(file: File) -> Edits:
    """Any other upcast."""
    for cast in _upcasts(file):
        above, consumer = file.parents[cast], _consumer(file, cast)
        if (
            consumer not in REDUCTIONS
            and consumer not in UNSUPPORTED
            and not isinstance(above, (ast.Assign, ast.AnnAssign, ast.BinOp, ast.UnaryOp, ast.Compare))
        ):
            yield (drop(file, cast),)


def _before_product(file: File) -> Edits:
    """``.float()`` on one operand of a product."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and called(node) == ATTENTION:
            continue
        for operand in operands(file, node)[:1]:
            if not is_upcast(file, operand):
                yield (file.replace(operand, in_parentheses(operand, file.text(operand)) + ".float()"),)


def _attention(file: File) -> Edits:
    for node in file.nodes:
        if isinstance(node, ast.Call) and called(node) == ATTENTION:
            for operand in operands(file, node):
                yield (file.replace(operand, in_parentheses(operand, file.text(operand)) + ".float()"),)


def _before_layer(file: File) -> Edits:
    """``self.layer(x.float())`` where the constructor makes the layer one of weights."""
    for call in file.calls():
        function = call.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "self"
            and len(call.args) == 1
            and isinstance(call.args[0], (ast.Name, ast.Call))
            and not is_upcast(file, call.args[0])
            and function.attr in _weighted(file, file.owner(call))
        ):
            yield (file.after(call.args[0], ".float()"),)


@lru_cache(maxsize=64)
def _weighted(file: File, owner: ast.ClassDef | None) -> frozenset[str]:
    """The attributes that a class sets to linear or convolution layers."""
    return frozenset(
        target.attr
        for statement in (ast.walk(owner) if owner is not None else ())
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        if is_torch(file, statement.value.func, "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d")
        for target in statement.targets
        if isinstance(target, ast.Attribute)
    )


def _restoring(file: File) -> Edits:
    """The cast back to a kept dtype at a return."""
    for node in file.nodes:
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            cast = node.value
            if called(cast) in ("to", "type_as") and isinstance(cast.func, ast.Attribute) and len(cast.args) == 1:
                inner = receiver(cast)
                yield (file.replace(cast, in_parentheses(inner, file.text(inner))),)


OPERATORS = (
    Operator("reduction-upcast-dropped", _reduction, numeric=True),
    Operator("reduction-dtype-dropped", _reduction_dtype, numeric=True),
    Operator("unsupported-upcast-dropped", _unsupported),
    Operator("upcast-statement-dropped", _statement, numeric=True),
    Operator("arithmetic-upcast-dropped", _arithmetic, numeric=True),
    Operator("other-upcast-dropped", _other, numeric=True),
    Operator("float-before-product", _before_product),
    Operator("float-before-layer", _before_layer),
    Operator("attention-operand-upcast", _attention),
    Operator("return-cast-dropped", _restoring),
)
