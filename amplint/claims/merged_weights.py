"""Weights that change their dtype when something of another module is merged into them.

``layer.weight.data = layer.weight.data * self.scale`` puts the promoted product in the place of the weight, and torch
lets it: a bfloat16 weight is float32 from then on, and its layer raises for the next bfloat16 input. The in-place
forms (``layer.weight.data *= self.scale``) keep the dtype. A module that works on another's weights was made beside it
or after it, mostly in float32, so that the two have no dtype in common that anything but a cast guarantees.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_PROMOTING = frozenset(("mul", "multiply", "div", "divide", "true_divide", "add", "sub", "subtract"))
_VIEWS = frozenset(("clone", "detach", "view", "reshape", "t", "transpose", "contiguous", "unsqueeze", "squeeze"))
_TYPING = frozenset(("to", "type", "type_as", "float", "half", "bfloat16", "double", "dtype", "copy_", "finfo"))
"""Attributes that show that an expression, or a method, looks after dtypes."""
MAX_BINDINGS = 6
"""Variables that are looked through from one to the next."""
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Merge:
    """``weight.data = weight.data * other``: ``node`` is the product, ``target`` the text of what is assigned to.

    ``weight`` is the operand that is replaced, ``other`` what it is merged with.
    """

    node: ast.expr
    target: str
    weight: ast.expr
    other: ast.expr


def merges(tree: ast.AST, around: Surroundings) -> Iterator[Merge]:
    """Each weight of another module that a method replaces by its promotion with what its own object holds."""
    for cls in nodes_of_kind(tree, ast.ClassDef):
        for method in cls.body:
            if isinstance(method, _Function):
                yield from _merges(method, cls, around)


def _parameters(cls: ast.ClassDef) -> Iterator[str]:
    """The attributes of ``self`` that a class makes parameters."""
    for node in nodes_of_kind(cls, ast.Assign):
        if isinstance(node.value, ast.Call) and _is_of_self(node.targets[0]):
            called = node.value.func
            if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "Parameter":
                yield ast.unparse(node.targets[0])


def _merges(method: ast.FunctionDef | ast.AsyncFunctionDef, cls: ast.ClassDef, around: Surroundings) -> Iterator[Merge]:
    statements = [node for node in nodes_of_kind(method, ast.Assign) if len(node.targets) == 1]
    for statement in statements:
        target = statement.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != "data" or _is_of_self(target.value):
            continue
        before = [s for s in statements if s.lineno < statement.lineno]
        scope = _Scope(before, ast.unparse(target.value), frozenset(_parameters(cls)), around)
        product = scope.product(statement.value)
        if product is not None:
            yield Merge(product[0], ast.unparse(target), *product[1:])


class _Scope:
    """The variables of a method at one of its statements.

    ``weight`` is the text of the parameter assigned to there, ``own`` are those of the object's own parameters.
    """

    def __init__(self, before: list[ast.Assign], weight: str, own: frozenset[str], around: Surroundings) -> None:
        self._around = around
        self.bound: dict[str, ast.expr] = {}
        for statement in sorted(before, key=lambda s: s.lineno):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id not in _names(statement.value):
                self.bound[target.id] = statement.value
        self.rebound = {
            statement.targets[0].id: statement.value
            for statement in before
            if isinstance(statement.targets[0], ast.Name) and statement.targets[0].id in _names(statement.value)
        }
        self.weight = weight
        self.own = own

    def product(self, value: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr] | None:
        """The promoting operation that a value is, its operand that is the weight, and the other one."""
        if isinstance(value, ast.Name):
            value = self.rebound.get(value.id) or self.bound.get(value.id, value)
        operands = _operands(self._around, value)
        if operands is None:
            return None
        for weight, other in (operands, operands[::-1]):
            if self._is_weight(weight) and self._is_own(other):
                return value, weight, other
        return None

    def _is_weight(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is the parameter that is assigned to, in its own dtype."""
        while True:
            if ast.unparse(node) in (self.weight, f"{self.weight}.data"):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
                node = node.func.value
            elif isinstance(node, ast.Name) and node.id in self.bound and depth < MAX_BINDINGS:
                node, depth = self.bound[node.id], depth + 1
            else:
                return False

    def _is_own(self, node: ast.expr) -> bool:
        """Whether an expression is computed from a parameter of ``self``, or an item of what it holds, and not cast."""
        pending, depth, held = [node], 0, False
        while pending:
            for inner in ast.walk(pending.pop()):
                if isinstance(inner, ast.Attribute) and (inner.attr in _TYPING or ast.unparse(inner) == self.weight):
                    return False
                if isinstance(inner, ast.Name) and inner.id in self.bound and depth < MAX_BINDINGS:
                    pending.append(self.bound[inner.id])
                    depth += 1
                item = isinstance(inner, ast.Subscript) and self._is_item(inner)
                held = held or item or (isinstance(inner, ast.Attribute) and ast.unparse(inner) in self.own)
                called = inner.func if isinstance(inner, ast.Call) else None
                if called is not None and _is_of_self(called) and isinstance(called, ast.Attribute):
                    return False
        return held

    def _is_item(self, node: ast.Subscript) -> bool:
        """Whether something is an item of what ``self`` holds; what it holds of the weight (``self.state[p]``) has the
        weight's dtype."""
        return _is_of_self(node.value) and ast.unparse(node.slice) != self.weight


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _operands(around: Surroundings, value: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The operands of arithmetic that promotes, as an operator, a torch function or a method."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
        return value.left, value.right
    if not isinstance(value, ast.Call) or around.called(value) not in _PROMOTING or value.keywords:
        return None
    if around.torch_name(value.func):
        return (value.args[0], value.args[1]) if len(value.args) == 2 else None
    of_tensor = isinstance(value.func, ast.Attribute) and len(value.args) == 1
    return (value.func.value, value.args[0]) if of_tensor and isinstance(value.func, ast.Attribute) else None


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
