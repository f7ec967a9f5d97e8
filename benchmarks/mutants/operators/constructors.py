"""Tensors that are made without the dtype they need, or with one that is fixed."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from mutants.operators.operator import Operator
from mutants.operators.spelling import NEW, called, dtype_argument, is_cast, is_constructor, is_torch, receiver

if TYPE_CHECKING:
    from mutants.edits import Edit
    from mutants.operators.operator import Edits
    from mutants.sources import File

_LIKE = {"zeros_like": "zeros", "ones_like": "ones", "empty_like": "empty", "rand_like": "rand", "randn_like": "randn"}
_LAYERS = ["Linear", "LayerNorm", "RMSNorm", "GroupNorm", "Embedding", "Conv1d", "Conv2d"]


def _dtype_forgotten(file: File) -> Edits:
    for call in file.calls():
        if is_constructor(file, call):
            for keyword in call.keywords:
                if keyword.arg == "dtype" and file.name(keyword.value) not in (
                    "torch.long",
                    "torch.int64",
                    "torch.bool",
                ):
                    yield (file.without_argument(call, keyword),)


def _to_forgotten(file: File) -> Edits:
    """``zeros(n).to(x)``, ``arange(n).to(device, dtype)``: the cast of what was just made."""
    for call in file.calls():
        if not isinstance(call.func, ast.Attribute) or not is_constructor(file, call.func.value):
            continue
        if is_cast(file, call) or (called(call) == "to" and len(call.args) == 1 and _is_tensor(file, call.args[0])):
            yield (file.replace(call, file.text(receiver(call))),)


def _is_tensor(file: File, node: ast.expr) -> bool:
    """Whether the function asks the same name for its dtype or shape."""
    function = file.function(node)
    return isinstance(node, ast.Name) and function is not None and node.id in tensors(function)


@lru_cache(maxsize=256)
def tensors(function: ast.AST) -> list[str]:
    """The names that a function asks for their dtype, shape or size: those of tensors."""
    asked = ("dtype", "shape", "size", "ndim", "dim", "device", "new_zeros", "new_ones", "masked_fill", "transpose")
    return list(
        dict.fromkeys(
            node.value.id
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute)
            and node.attr in asked
            and isinstance(node.value, ast.Name)
            and node.value.id not in ("self", "torch", "cls", "ctx")
        )
    )


def _untyped(file: File) -> Edits:
    """``x.new_zeros(n)`` and ``zeros_like(x)`` become ``torch.zeros(n)``, in torch's default dtype."""
    if file.torch is None:
        return
    for call in file.calls():
        if called(call) in NEW[:3] and isinstance(call.func, ast.Attribute):
            device = f"{file.text(receiver(call))}.device"
            if not any(keyword.arg in ("dtype", "device") for keyword in call.keywords):
                arguments = ", ".join(file.text(argument) for argument in call.args)
                yield (file.replace(call, f"{file.torch}.{called(call)[4:]}({arguments}, device={device})"),)
        elif is_torch(file, call.func, *_LIKE) and len(call.args) == 1 and not call.keywords:
            like = file.text(call.args[0])
            plain = f"{file.torch}.{_LIKE[called(call)]}({like}.shape, device={like}.device)"
            yield (file.replace(call, plain),)


def _one_hot_untyped(file: File) -> Edits:
    """A one-hot, identity or triangular matrix that follows a tensor's dtype becomes float32."""
    for call in file.calls():
        if is_cast(file, call) and called(call) in ("to", "type_as", "type"):
            inner = receiver(call)
            if isinstance(inner, ast.Call) and called(inner) in ("one_hot", "eye", "tril", "triu", "diag", "eq", "ne"):
                argument = dtype_argument(file, call) if called(call) == "to" else call.args[0]
                if argument is not None:
                    yield (file.replace(call, f"{file.text(inner)}.float()"),)


def _buffer_attribute(file: File) -> Edits:
    for call in _buffers(file):
        statement = file.statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call:
            name = call.args[0].value  # type: ignore[attr-defined]
            yield (file.replace(statement, f"self.{name} = {file.text(call.args[1])}"),)


def _buffer_float32(file: File) -> Edits:
    """A buffer of torch's default dtype gets float32 written out."""
    if file.torch is None:
        return
    for call in _buffers(file):
        made = call.args[1]
        if is_constructor(file, made) and isinstance(made, ast.Call):
            if is_torch(file, made.func, "zeros", "ones", "empty", "rand", "randn", "eye", "linspace") and not any(
                keyword.arg == "dtype" for keyword in made.keywords
            ):
                yield (_with_float32(file, made),)
        elif isinstance(made, (ast.Name, ast.BinOp)):
            yield (file.before(made, "("), file.after(made, f").to({file.torch}.float32)"))


def _buffers(file: File) -> list[ast.Call]:
    return [
        call
        for call in file.calls()
        if called(call) == "register_buffer"
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "self"
        and len(call.args) >= 2
        and isinstance(call.args[0], ast.Constant)
        and not (isinstance(call.args[1], ast.Constant) and call.args[1].value is None)
    ]


def _with_float32(file: File, call: ast.Call) -> Edit:
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    last = max(arguments, key=lambda argument: (argument.end_lineno or 0, argument.end_col_offset or 0))
    return file.after(last, f", dtype={file.torch}.float32")


def _parameter_float32(file: File) -> Edits:
    if file.torch is None:
        return
    for call in file.calls():
        if not is_torch(file, call.func, "Parameter") or not call.args:
            continue
        made = call.args[0]
        if (
            isinstance(made, ast.Call)
            and is_torch(file, made.func, "zeros", "ones", "empty", "rand", "randn", "eye")
            and (made.args or made.keywords)
            and not any(keyword.arg == "dtype" for keyword in made.keywords)
        ):
            yield (_with_float32(file, made),)


def _layer_float32(file: File) -> Edits:
    if file.torch is None:
        return
    for call in file.calls():
        if (
            is_torch(file, call.func, *_LAYERS)
            and call.args
            and not any(keyword.arg in ("dtype", None) for keyword in call.keywords)
        ):
            yield (_with_float32(file, call),)


OPERATORS = (
    Operator("constructor-dtype-forgotten", _dtype_forgotten),
    Operator("constructor-to-forgotten", _to_forgotten),
    Operator("constructor-untyped", _untyped),
    Operator("one-hot-untyped", _one_hot_untyped),
    Operator("buffer-made-attribute", _buffer_attribute),
    Operator("buffer-float32", _buffer_float32),
    Operator("parameter-float32", _parameter_float32),
    Operator("layer-float32", _layer_float32),
)
