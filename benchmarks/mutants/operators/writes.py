"""Forms of the same operation that cast otherwise: index assignment, in place, ``out=``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mutants.operators.operator import Operator
from mutants.operators.spelling import called, is_torch

if TYPE_CHECKING:
    from mutants.edits import Edit
    from mutants.operators.operator import Edits
    from mutants.sources import File

_IN_PLACE = [
    "add",
    "sub",
    "mul",
    "div",
    "clamp",
    "masked_fill",
    "addmm",
    "baddbmm",
    "addbmm",
    "index_add",
    "index_copy",
    "scatter",
    "scatter_add",
    "index_fill",
    "masked_scatter",
    "lerp",
    "addcmul",
    "addcdiv",
]
_OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _index_write(file: File) -> Edits:
    """``x[a:b] = y`` casts; ``x[torch.arange(len)[a:b]] = y`` does not."""
    if file.torch is None:
        return
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
            continue
        target = node.targets[0]
        items = list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice]
        base = file.text(target.value)
        for position, item in enumerate(items):
            if isinstance(item, ast.Constant) and item.value in (None, Ellipsis):
                break
            if isinstance(item, ast.Slice) and (item.lower or item.upper or item.step):
                parts = [file.text(part) if part else "" for part in (item.lower, item.upper)]
                cut = f"{parts[0]}:{parts[1]}" + (f":{file.text(item.step)}" if item.step else "")
                index = f"{file.torch}.arange({base}.shape[{position}], device={base}.device)[{cut}]"
                yield (file.replace(item, index),)  # type: ignore[arg-type]
                break


def _in_place_operator(file: File) -> Edits:
    """``x = x + y`` becomes ``x += y``."""
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.BinOp):
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and isinstance(value.left, ast.Name) and value.left.id == target.id:
            sign = _OPERATIONS.get(type(value.op))
            if sign is not None and not isinstance(value.right, ast.Constant):
                yield (file.replace(node, f"{target.id} {sign}= {file.text(value.right)}"),)


def _in_place_method(file: File) -> Edits:
    for call in file.calls():
        if called(call) in _IN_PLACE and isinstance(call.func, ast.Attribute) and call.args:
            function = call.func
            if not file.name(function).startswith("torch."):
                yield (file.replace(function, f"{file.text(function.value)}.{function.attr}_"),)
            elif is_torch(file, function, "addmm", "baddbmm", "addbmm") and not call.keywords:
                rest = ", ".join(file.text(argument) for argument in call.args[1:])
                yield (file.replace(call, f"{file.text(call.args[0])}.{called(call)}_({rest})"),)


def _out(file: File) -> Edits:
    """A product written into a new tensor with ``out=``."""
    if file.torch is None:
        return
    for node in file.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield _written(file, node, "matmul", node.left, node.right)
        elif not isinstance(node, ast.Call) or node.keywords:
            continue
        elif is_torch(file, node.func, "matmul", "bmm", "mm", "addmm", "baddbmm"):
            if len(node.args) >= 2:
                yield (file.after(node.args[-1], f", out=({file.text(node.args[0])}).new_empty(0)"),)
        elif called(node) in ("matmul", "bmm", "mm") and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            yield _written(file, node, called(node), node.func.value, node.args[0])


def _written(file: File, node: ast.expr, name: str, first: ast.expr, second: ast.expr) -> tuple[Edit, ...]:
    left, right = file.text(first), file.text(second)
    return (file.replace(node, f"{file.torch}.{name}({left}, {right}, out=({left}).new_empty(0))"),)


OPERATORS = (
    Operator("index-write", _index_write),
    Operator("in-place-operator", _in_place_operator),
    Operator("in-place-method", _in_place_method),
    Operator("out-form", _out, inference=True),
)
