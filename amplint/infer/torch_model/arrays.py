"""Expressions that are an array of NumPy, which lies in the host's memory, and so does the tensor made of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import External
from amplint.infer.names.annotations import is_none, last_name, unquoted
from amplint.infer.state.dispatch import evaluate
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

_MAKERS = frozenset(
    f"numpy.{name}"
    for name in (
        *("array", "asarray", "ascontiguousarray", "stack", "vstack", "hstack", "concatenate", "column_stack"),
        *("zeros", "ones", "empty", "full", "arange", "linspace", "zeros_like", "ones_like", "expand_dims"),
    )
)
"""Functions of NumPy whose result is no scalar."""
_ITS_OWN = frozenset(("astype", "copy", "reshape", "ravel", "flatten", "transpose"))
"""Methods of arrays that give one, and of tensors too."""
_CLASSES = frozenset(("ndarray", "NDArray"))


def is_array(frame: Frame, node: ast.expr | None) -> bool:
    """Whether an expression that a function of its frame evaluates is an array, by its annotation or by what makes it.

    An array without dimensions is as rare there as a number.
    """
    if isinstance(node, ast.Name):
        return _is_held(frame, node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ITS_OWN and is_array(frame, node.func.value):
        return True
    made = evaluate(frame, node.func)
    return isinstance(made, External) and made.name in _MAKERS


def _is_held(frame: Frame, name: ast.Name) -> bool:
    """Whether a variable that its function binds once holds an array."""
    function = frame.definition
    if function is None or isinstance(function, ast.Lambda):
        return False
    stores = [n for n in nodes_of_kind(function, ast.Name) if n.id == name.id and not isinstance(n.ctx, ast.Load)]
    spec = function.args
    given = next((a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == name.id), None)
    if given is not None:
        return not stores and given.annotation is not None and _is_class(unquoted(given.annotation))
    made = [
        s
        for s in nodes_of_kind(function, ast.Assign)
        if any(target is store for target in s.targets for store in stores)
    ]
    return len(stores) == 1 and len(made) == 1 and is_array(frame, made[0].value)


def _is_class(annotation: ast.expr | None) -> bool:
    """Whether an annotation names the class of arrays, with None beside it or not."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [side for side in (annotation.left, annotation.right) if not is_none(side)]
        return len(sides) == 1 and _is_class(sides[0])
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice if last_name(annotation.value) == "Optional" else annotation.value
        return _is_class(inner)
    return annotation is not None and last_name(annotation) in _CLASSES
