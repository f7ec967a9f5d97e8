"""Casts that are dropped, moved, fixed to a dtype, or whose result is thrown away."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mutants.operators.operator import Operator
from mutants.operators.spelling import (
    called,
    dtype_argument,
    in_parentheses,
    is_cast,
    is_constructor,
    is_upcast,
    operands,
    receiver,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.edits import Edit
    from mutants.operators.operator import Edits
    from mutants.sources import File


def _casts(file: File) -> Iterator[ast.Call]:
    for call in file.calls():
        if is_cast(file, call):
            yield call


def drop(file: File, cast: ast.Call) -> Edit:
    """The edit that takes a cast away, but leaves a device that it moves to."""
    argument = dtype_argument(file, cast) if called(cast) == "to" else None
    if argument is not None and len(cast.args) + len(cast.keywords) > 1:
        return file.without_argument(cast, argument)
    inner = receiver(cast)
    return file.replace(cast, in_parentheses(inner, file.text(inner)))


def _dropped(file: File) -> Edits:
    for cast in _casts(file):
        inner = receiver(cast)
        if called(cast) != "type_as" and not is_constructor(file, inner) and not is_upcast(file, cast):
            yield (drop(file, cast),)


def _type_as_dropped(file: File) -> Edits:
    for cast in _casts(file):
        if called(cast) == "type_as":
            yield (drop(file, cast),)


def _one_operand(file: File) -> Edits:
    """Of two operands that are cast, one is left as it is; of one that is cast, the other takes its place."""
    for node in file.nodes:
        pair = operands(file, node)[:2]
        if isinstance(node, ast.BinOp) and not pair:
            pair = [node.left, node.right]
        if len(pair) != 2:
            continue
        cast = [operand for operand in pair if isinstance(operand, ast.Call) and is_cast(file, operand)]
        if len(cast) == 2:
            yield (drop(file, cast[1]),)
        elif len(cast) == 1:
            other = pair[1 - pair.index(cast[0])]
            if isinstance(other, ast.Constant):
                continue
            whole, inner = file.text(cast[0]), file.text(receiver(cast[0]))
            suffix = whole[len(inner) :] if whole.startswith(inner) else ""
            if suffix.startswith("."):
                text = in_parentheses(other, file.text(other)) + suffix
                yield drop(file, cast[0]), file.replace(other, text)


def _fixed(file: File, method: str) -> Edits:
    for cast in _casts(file):
        if is_upcast(file, cast) or called(cast) in ("half", "bfloat16", "double"):
            continue
        if called(cast) == "to" and len(cast.args) + len(cast.keywords) > 1:
            continue
        inner = receiver(cast)
        yield (file.replace(cast, f"{in_parentheses(inner, file.text(inner))}.{method}()"),)


def _fixed_float32(file: File) -> Edits:
    yield from _fixed(file, "float")


def _fixed_float16(file: File) -> Edits:
    yield from _fixed(file, "half")
    for cast in _casts(file):
        if is_upcast(file, cast) and called(cast) == "float":
            inner = receiver(cast)
            yield (file.replace(cast, f"{in_parentheses(inner, file.text(inner))}.half()"),)


def _discarded(file: File) -> Edits:
    """``x = x.to(dtype)`` becomes ``x.to(dtype)``."""
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not is_cast(file, node.value):
            continue
        if ast.dump(node.targets[0]).replace("Store", "Load") == ast.dump(receiver(node.value)):
            yield (file.replace(node, file.text(node.value)),)


OPERATORS = (
    Operator("cast-dropped", _dropped),
    Operator("type-as-dropped", _type_as_dropped),
    Operator("cast-on-one-operand", _one_operand),
    Operator("cast-fixed-float32", _fixed_float32),
    Operator("cast-fixed-float16", _fixed_float16),
    Operator("cast-discarded", _discarded),
)
