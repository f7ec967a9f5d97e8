"""Positions, steps and angles counted in the model's dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mutants.operators.constructors import tensors
from mutants.operators.operator import Operator
from mutants.operators.spelling import called, is_cast, is_torch, is_upcast, receiver

if TYPE_CHECKING:
    from mutants.operators.operator import Edits
    from mutants.sources import File


def _model_dtype(file: File, node: ast.AST) -> str | None:
    """``x.dtype`` of the function's first tensor argument that it asks about."""
    function = file.function(node)
    if function is None:
        return None
    parameters = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
    found = [name for name in tensors(function) if name in parameters]
    return f"{found[0]}.dtype" if found else None


def _arange(file: File) -> Edits:
    for call in file.calls():
        if not is_torch(file, call.func, "arange", "linspace"):
            continue
        dtype = _model_dtype(file, call)
        if dtype is None:
            continue
        written = next((keyword for keyword in call.keywords if keyword.arg == "dtype"), None)
        if written is None:
            last = [*call.args, *call.keywords][-1]
            above = file.parents[call]
            upcast = isinstance(above, ast.Attribute) and is_cast(file, file.parents[above])
            if upcast or called(call) == "linspace" or _is_multiplied(file, call):
                yield (file.after(last, f", dtype={dtype}"),)
        elif file.name(written.value) in ("torch.float32", "torch.float"):
            yield (file.replace(written.value, dtype),)


def _is_multiplied(file: File, node: ast.AST) -> bool:
    return isinstance(file.parents[node], ast.BinOp)


def _position_cast(file: File) -> Edits:
    """The upcast of counted positions or of ids goes to the model's dtype."""
    for call in file.calls():
        if not is_upcast(file, call):
            continue
        inner = receiver(call)
        counted = isinstance(inner, ast.Call) and called(inner) in ("arange", "cumsum", "linspace")
        named = isinstance(inner, ast.Name) and any(word in inner.id for word in ("pos", "step", "time", "ids", "freq"))
        dtype = _model_dtype(file, call)
        if (counted or named) and dtype is not None:
            yield (file.replace(call, f"{file.text(inner)}.to({dtype})"),)


def _angles(file: File) -> Edits:
    """What a sine or cosine is taken of goes to the model's dtype before."""
    for call in file.calls():
        if called(call) not in ("sin", "cos") or isinstance(file.parents[call], ast.FormattedValue):
            continue
        dtype = _model_dtype(file, call)
        if dtype is None:
            continue
        if is_torch(file, call.func, "sin", "cos") and len(call.args) == 1:
            inner = call.args[0]
        elif isinstance(call.func, ast.Attribute) and not call.args and not file.name(call.func).startswith("math."):
            inner = call.func.value
        else:
            continue
        yield (file.replace(inner, f"({file.text(inner)}).to({dtype})"),)


OPERATORS = (
    Operator("arange-in-model-dtype", _arange, numeric=True),
    Operator("positions-in-model-dtype", _position_cast, numeric=True),
    Operator("angles-in-model-dtype", _angles, numeric=True),
)
