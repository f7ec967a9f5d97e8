"""Constants that a low-precision type cannot hold or tell from zero."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from mutants.operators.constructors import tensors
from mutants.operators.operator import Operator
from mutants.operators.spelling import called, in_parentheses, is_torch, receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.operators.operator import Edits
    from mutants.sources import File

_MASKING = ("masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_")
_EPSILON = re.compile(r"(^|_)(eps|epsilon|tiny|min|min_val|atol)$", re.I)


def _limits(file: File) -> Iterator[tuple[ast.expr, ast.Call]]:
    """``torch.finfo(...).min``, ``-torch.finfo(...).max``, each with the call of finfo."""
    for node in file.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Call):
            continue
        if not is_torch(file, node.value.func, "finfo"):
            continue
        above = file.parents[node]
        negated = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub)
        if node.attr == "min" and not negated:
            yield node, node.value
        elif node.attr == "max" and negated:
            yield above, node.value  # type: ignore[misc]


def _mask_literal(file: File) -> Edits:
    for node, _ in _limits(file):
        yield (file.replace(node, "-1e9"),)


def _mask_inf(file: File) -> Edits:
    """``float("-inf")`` or a number as what masks, become a number that float16 cannot hold."""
    for call in file.calls():
        if called(call) not in _MASKING:
            continue
        for argument in call.args:
            if _is_minus_infinity(file, argument) or _is_negative(argument):
                yield (file.replace(argument, "-1e9"),)


def _is_minus_infinity(file: File, node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return file.name(node.operand) in ("torch.inf", "math.inf", "numpy.inf") or _is_infinity(node.operand, "inf")
    return _is_infinity(node, "-inf")


def _is_infinity(node: ast.expr, word: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and called(node) == "float"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == word
    )


def _is_negative(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, (int, float))
        and 100 <= node.operand.value <= 65504
    )


def _finfo_float32(file: File) -> Edits:
    for call in file.calls():
        if not is_torch(file, call.func, "finfo") or len(call.args) != 1 or file.torch is None:
            continue
        if file.name(call.args[0]) != "torch.float32":
            yield (file.replace(call.args[0], f"{file.torch}.float32"),)


def _finfo_other(file: File) -> Edits:
    """``finfo(x.dtype)`` asks another tensor of the function."""
    for call in file.calls():
        if not is_torch(file, call.func, "finfo") or len(call.args) != 1:
            continue
        asked, function = call.args[0], file.function(call)
        if isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and function is not None:
            others = [name for name in tensors(function) if name != asked.value.id]
            parameters = {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
            for name in [name for name in others if name in parameters][:2]:
                yield (file.replace(asked, f"{name}.dtype"),)


def _epsilons(file: File) -> Iterator[ast.Constant]:
    """Small numbers that keep something from zero: added to a denominator or root, a lower bound, an ``eps``."""
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 1e-9 < node.value <= 1.1e-2:
            above = file.parents[node]
            if (
                (isinstance(above, ast.keyword) and above.arg is not None and _EPSILON.search(above.arg))
                or (isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add))
                or (
                    isinstance(above, ast.Call) and called(above) in ("clamp", "clamp_", "clip", "clamp_min", "maximum")
                )
            ):
                yield node


def _epsilon_tiny(file: File) -> Edits:
    for node in _epsilons(file):
        yield (file.replace(node, "1e-12"),)


def _epsilon_moved(file: File) -> Edits:
    """``sqrt(v + eps)`` becomes ``sqrt(v) + eps``."""
    for call in file.calls():
        method = isinstance(call.func, ast.Attribute) and not is_torch(file, call.func, "sqrt", "rsqrt")
        if called(call) not in ("sqrt", "rsqrt") or len(call.args) != (0 if method else 1):
            continue
        inner = receiver(call) if method else call.args[0]
        if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Add):
            continue
        root = f"{in_parentheses(inner.left, file.text(inner.left))}.sqrt() + {file.text(inner.right)}"
        yield (file.replace(call, f"({root})" if called(call) == "sqrt" else f"(1 / ({root}))"),)


def _clamp_wide(file: File) -> Edits:
    """An upper bound within float16 becomes one beyond it; a lower bound for a divisor or a logarithm smaller."""
    for call in file.calls():
        if called(call) not in ("clamp", "clip", "clamp_", "clamp_max"):
            continue
        method = not is_torch(file, call.func, called(call))
        position = (0 if method else 1) + (called(call) != "clamp_max")
        bound = next((keyword.value for keyword in call.keywords if keyword.arg == "max"), None)
        if bound is None and len(call.args) > position:
            bound = call.args[position]
        if isinstance(bound, ast.Constant) and isinstance(bound.value, (int, float)) and 10 <= bound.value <= 65504:
            yield (file.replace(bound, "1e6"),)


def _clamp_dtype(file: File) -> Edits:
    """A bound that follows the dtype becomes the one for float32."""
    for node in file.nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in ("max", "tiny", "eps", "smallest_normal"):
            continue
        if not isinstance(node.value, ast.Call) or not is_torch(file, node.value.func, "finfo"):
            continue
        above = file.parents[node]
        if not (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub)):
            text = {"max": "3.4e38", "eps": "1.2e-7"}.get(node.attr, "1.2e-38")
            yield (file.replace(node, text),)


OPERATORS = (
    Operator("mask-limit-literal", _mask_literal, numeric=True),
    Operator("mask-infinity-literal", _mask_inf, numeric=True),
    Operator("finfo-float32", _finfo_float32, numeric=True),
    Operator("finfo-of-other", _finfo_other, numeric=True),
    Operator("epsilon-tiny", _epsilon_tiny, numeric=True),
    Operator("epsilon-moved", _epsilon_moved, numeric=True),
    Operator("clamp-bound-wide", _clamp_wide, numeric=True),
    Operator("limit-of-float32", _clamp_dtype, numeric=True),
)
