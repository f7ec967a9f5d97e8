"""Rotary embeddings whose result has the dtype of the angles: ``t * freqs.cos() + rotate_half(t) * freqs.sin()``.

Angles are float32 wherever they are right, since 16 bit cannot hold positions (AMP306). A function that takes them
beside the tensor that it rotates, takes their sine and cosine itself and casts nothing, returns float32 for a
half-precision query or key.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_TYPING = frozenset(("to", "type", "type_as", "float", "half", "bfloat16", "double", "dtype", "astype", "finfo"))
"""Attributes that show that a function looks after dtypes."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A sum of ``tensor`` times a cosine and of the same, rearranged, times a sine of what ``angles`` hold.

    ``tensor`` and ``angles`` are the names of two parameters, ``rotated`` is the expression that is multiplied with
    the ``cosine``.
    """

    node: ast.BinOp
    tensor: str
    angles: str
    rotated: ast.expr
    cosine: ast.Call


def rotations(around: Surroundings, tree: ast.AST) -> Iterator[Rotation]:
    """The first rotation of each function that is returned and casts nothing."""
    for function in nodes_of_kind(tree, ast.FunctionDef, ast.AsyncFunctionDef):
        sums = [node for node in nodes_of_kind(function, ast.BinOp) if isinstance(node.op, (ast.Add, ast.Sub))]
        if sums and not _looks_after_dtypes(function):
            names = _Names(function, around)
            found = map(names.rotation, sums)
            rotation = next((one for one in found if one is not None and names.is_returned(one.node)), None)
            if rotation is not None:
                yield rotation


def _looks_after_dtypes(function: ast.AST) -> bool:
    """Whether a function mentions a dtype or a cast anywhere; decorators have their say outside."""
    return any(node.attr in _TYPING for node in nodes_of_kind(function, ast.Attribute)) or any(
        node.arg == "dtype" for node in nodes_of_kind(function, ast.keyword)
    )


class _Names:
    """What the variables of one function hold, as far as assignments tell."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, around: Surroundings) -> None:
        self._around = around
        spec = function.args
        self.parameters = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)} - {"self", "cls"}
        self.bound: dict[str, list[ast.expr]] = {}
        self.returned = [node.value for node in nodes_of_kind(function, ast.Return) if node.value is not None]
        for node in nodes_of_kind(function, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bound.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            paired = len(values) == len(target.elts)
            for index, part in enumerate(target.elts):
                self._bind(part, values[index] if paired else value)

    def rotation(self, node: ast.BinOp) -> Rotation | None:
        """The rotation that a sum is, if it is one."""
        left, right = _factors(node.left), _factors(node.right)
        for turned, kept in ((left, right), (right, left)):
            by_cosine, by_sine = self._turning(turned, "cos"), self._turning(kept, "sin")
            if by_cosine is None or by_sine is None or by_cosine[0] != by_sine[0]:
                continue
            angles, cosine, factors = by_cosine
            for factor in factors:
                tensor = self._parameter(factor)
                others = {self._parameter(other) for other in by_sine[2]}
                if tensor is not None and tensor != angles and tensor in others:
                    return Rotation(node, tensor, angles, factor, cosine)
        return None

    def _turning(self, factors: list[ast.expr], name: str) -> tuple[str, ast.Call, list[ast.expr]] | None:
        """The parameter whose sine or cosine is among the factors of a product, the call, and the other factors."""
        for factor in factors:
            call = self._call(factor, name)
            angles = self._around.subject(call) if call is not None else None
            parameter = self._parameter(angles) if angles is not None else None
            if call is not None and parameter is not None:
                return parameter, call, [other for other in factors if other is not factor]
        return None

    def _call(self, node: ast.expr, name: str) -> ast.Call | None:
        """The call of the sine or cosine that an expression is, or a view of."""
        for value in self._held(node):
            if isinstance(value, ast.Call) and self._around.called(value) == name and self._around.subject(value):
                return value
        return None

    def _held(self, node: ast.expr) -> Iterator[ast.expr]:
        """An expression and what it is a view or part of, through the variables on the way."""
        pending, seen = [node], set[str]()
        while pending:
            value = pending.pop()
            yield value
            if isinstance(value, ast.Subscript):
                pending.append(value.value)
            elif isinstance(value, ast.Name) and value.id not in seen:
                seen.add(value.id)
                pending.extend(self.bound.get(value.id, ()))
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                handed_on = not self._around.is_imported(value.func.value) and value.func.attr not in ("cos", "sin")
                pending.extend((value.func.value,) if handed_on else ())

    def _parameter(self, node: ast.expr) -> str | None:
        """The parameter that an expression is a rearrangement or a part of."""
        pending, seen = [node], set[str]()
        while pending:
            name = self._root(pending.pop())
            if name in self.parameters:
                return name
            if name is not None and name not in seen:
                seen.add(name)
                pending.extend(self.bound.get(name, ()))
        return None

    def _root(self, node: ast.expr) -> str | None:
        """The variable that an expression takes its values from, through views, items and first arguments."""
        while not isinstance(node, ast.Name):
            if isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            elif isinstance(node, ast.UnaryOp):
                node = node.operand
            elif isinstance(node, ast.Call):
                method = node.func if isinstance(node.func, ast.Attribute) else None
                if method is not None and not self._around.is_imported(method.value):
                    node = method.value
                elif node.args:
                    node = node.args[0]
                else:
                    return None
            else:
                return None
        return node.id

    def is_returned(self, node: ast.expr) -> bool:
        """Whether the value of an expression is in what the function returns."""
        pending, seen = list(self.returned), set[str]()
        while pending:
            for inner in ast.walk(pending.pop()):
                if inner is node:
                    return True
                if isinstance(inner, ast.Name) and inner.id not in seen:
                    seen.add(inner.id)
                    pending.extend(self.bound.get(inner.id, ()))
        return False


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]
