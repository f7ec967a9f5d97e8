"""What annotations promise of a value that the inference did not follow: numbers, flags, tensors, tuples of these."""

from __future__ import annotations

import ast
from functools import lru_cache

from amplint.infer.lattice.contexts import AutocastContext
from amplint.infer.lattice.dtypes import BITS, BOOL
from amplint.infer.lattice.joining import options_of, unite
from amplint.infer.lattice.values import NONE, UNKNOWN, Number, Sequence, Value

PYTHON_NUMBERS = {"int": "int", "float": "float", "bool": "bool"}
_TUPLES = ("Tuple", "tuple")
_LISTS = ("List", "list", "Sequence")


_FIXED = {
    **dict.fromkeys(("Int", "Integer", "Int64", "LongTensor", "IntTensor"), BITS["int64"]),
    **dict.fromkeys(("Bool", "BoolTensor"), BOOL),
}
"""Annotations of torch and jaxtyping, as in ``Int[Tensor, "b n"]``, of a dtype that no scenario changes."""


@lru_cache(maxsize=4096)
def unquoted(annotation: ast.expr) -> ast.expr | None:
    """An annotation whose string form is parsed, its nodes in row 0; None where that is no expression."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            parsed = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        for node in ast.walk(parsed):
            if isinstance(node, ast.expr):
                node.lineno = 0
        return parsed
    return annotation


def last_name(node: ast.expr) -> str:
    """``Tensor`` of ``torch.Tensor``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_none(node: ast.expr) -> bool:
    """Whether it is ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


@lru_cache(maxsize=4096)
def dtype_promised(annotation: ast.expr) -> int | None:
    """The integers or booleans of a tensor that an annotation promises, with None beside it or not."""
    plain = unquoted(annotation)
    sides: list[ast.expr] = []
    if isinstance(plain, ast.BinOp) and isinstance(plain.op, ast.BitOr):
        sides = [plain.left, plain.right]
    elif isinstance(plain, ast.Subscript) and last_name(plain.value) in ("Optional", "Union"):
        sides = plain.slice.elts if isinstance(plain.slice, ast.Tuple) else [plain.slice]
    elif isinstance(plain, ast.Subscript):
        return _FIXED.get(last_name(plain.value))
    elif plain is not None:
        return _FIXED.get(last_name(plain)) if last_name(plain).endswith("Tensor") else None
    dtypes = {dtype_promised(side) for side in sides if not is_none(side)}
    return dtypes.pop() if len(dtypes) == 1 else None


def promised(annotation: ast.expr) -> Value:
    """Numbers, and tuples that hold some; unknown for everything else."""
    plain = unquoted(annotation)
    if isinstance(plain, ast.Subscript):
        head = last_name(plain.value)
        parts = plain.slice.elts if isinstance(plain.slice, ast.Tuple) else [plain.slice]
        if not parts:
            return Sequence(()) if head in _TUPLES else UNKNOWN
        if head == "Optional":
            inner = promised(parts[0])
            return UNKNOWN if inner is UNKNOWN else unite(inner, NONE)
        if head in _TUPLES and not (isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis):
            return Sequence(tuple(map(promised, parts)))
        if head in _TUPLES or head in _LISTS:
            element = promised(parts[0])
            return UNKNOWN if element is UNKNOWN else Sequence(None, element, head in _LISTS)
    elif plain is not None and last_name(plain) in PYTHON_NUMBERS:
        return Number(PYTHON_NUMBERS[last_name(plain)])
    return UNKNOWN


def number_promised(annotation: ast.expr | None, default: ast.expr | None) -> Value:
    """The number that a parameter takes by its annotation, or by a default that is one; else unknown."""
    plain = unquoted(annotation) if annotation is not None else None
    if plain is not None:
        return Number(PYTHON_NUMBERS[last_name(plain)]) if last_name(plain) in PYTHON_NUMBERS else UNKNOWN
    if annotation is None and isinstance(default, ast.Constant) and type(default.value) in (int, float):
        return Number(type(default.value).__name__)
    return UNKNOWN


def refined(value: Value, annotation: ast.expr | None) -> Value:
    """A value, its unknown parts replaced by what the annotation promises of them.

    One that need not be what is known of it becomes unknown, but for a region of autocast, which may be one or not.
    """
    if annotation is None or not _has_unknown(value):
        return value
    return _filled(value, promised(annotation))


def _has_unknown(value: Value) -> bool:
    if isinstance(value, Sequence):
        return any(map(_has_unknown, value.items if value.items is not None else (value.element,)))
    return UNKNOWN in options_of(value)


def _filled(value: Value, promise: Value) -> Value:
    if value is UNKNOWN:
        return promise
    options = options_of(value)
    if promise is UNKNOWN and UNKNOWN in options and not any(isinstance(o, AutocastContext) for o in options):
        return promise
    if isinstance(value, Sequence) and value.items is not None and promise is UNKNOWN:
        return Sequence(tuple(_filled(item, promise) for item in value.items), mutable=value.mutable)
    if isinstance(value, Sequence) and isinstance(promise, Sequence):
        if value.items is not None and promise.items is not None and len(value.items) == len(promise.items):
            return Sequence(tuple(map(_filled, value.items, promise.items)), mutable=value.mutable)
        return value
    return unite(*(_filled(option, promise) for option in options)) if len(options) > 1 else value
