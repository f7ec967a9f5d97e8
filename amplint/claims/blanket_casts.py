"""Casts of everything that a model's state, a nest of tensors, or a module's buffers hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_LOW_METHODS = ("half", "bfloat16")
_LOW_DTYPES = ("torch.float16", "torch.half", "torch.bfloat16")
_BUFFERS = ("buffers", "named_buffers")
_MOVES = ("to", "cuda", "cpu", "detach", "clone", "contiguous", "data")
_TESTS = ("is_floating_point", "dtype", "is_complex")


@dataclass(frozen=True, slots=True)
class BlanketCast:
    """``name.half()`` for every ``name`` of ``source``."""

    cast: ast.Call
    source: ast.expr
    name: str


def blanket_casts(tree: ast.Module, around: Surroundings) -> Iterator[BlanketCast]:
    """The casts to a floating dtype of all buffers, of a state dict, or of all that a function is mapped over, with no
    test of what is cast."""
    for node in nodes_of_kind(tree, ast.For, ast.DictComp, ast.ListComp, ast.GeneratorExp, ast.Lambda):
        if isinstance(node, ast.For):
            yield from _casts(node.target, node.iter, node.body, around)
        elif isinstance(node, (ast.DictComp, ast.ListComp, ast.GeneratorExp)):
            bodies: list[ast.AST] = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for generator in node.generators:
                if not generator.ifs:
                    yield from _casts(generator.target, generator.iter, bodies, around)
        elif isinstance(node, ast.Lambda):
            yield from _applied(node, around)


def _applied(function: ast.Lambda, around: Surroundings) -> Iterator[BlanketCast]:
    """``tree_map(lambda t: t.half(), batch)``, ``module._apply(lambda t: t.to(dtype))``."""
    call = around.parent(function)
    if not isinstance(call, ast.Call) or function not in call.args or len(function.args.args) != 1:
        return
    others = [argument for argument in call.args if argument is not function]
    method = call.func if isinstance(call.func, ast.Attribute) else None
    of_module = method is not None and method.attr == "_apply"
    source = method.value if method is not None and of_module else others[0] if others else None
    name = function.args.args[0].arg
    if source is None or isinstance(source, (ast.Tuple, ast.List)):
        return
    yield from _in(function.body, source, name, around, any_dtype=of_module)


def _casts(
    target: ast.expr, source: ast.expr, body: list[ast.AST] | list[ast.stmt], around: Surroundings
) -> Iterator[BlanketCast]:
    name = _held(target, source, around)
    if name is not None:
        for statement in body:
            yield from _in(statement, source, name, around, any_dtype=True)


def _in(body: ast.AST, source: ast.expr, name: str, around: Surroundings, *, any_dtype: bool) -> Iterator[BlanketCast]:
    for node in nodes_of_kind(body, ast.Call):
        if not _casts_name(around, node, name, any_dtype=any_dtype):
            continue
        if not around.guarded(node, lambda test: _asks(around, test, name)):
            yield BlanketCast(node, source, name)


def _held(target: ast.expr, source: ast.expr, around: Surroundings) -> str | None:
    """The variable that holds each tensor of a module's buffers or state."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
        return None
    method, value = source.func.attr, source.func.value
    if method in ("items", "named_buffers"):
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    if method not in _BUFFERS and not (method in ("items", "values") and _is_state(value, around)):
        return None
    return target.id if isinstance(target, ast.Name) else None


def _is_state(node: ast.expr, around: Surroundings) -> bool:
    """Whether an expression is a module's state, or part of what was loaded, perhaps by way of a variable."""
    while isinstance(node, ast.Subscript):
        node = node.value
    made = around.only_value(node) if isinstance(node, ast.Name) else node
    if not isinstance(made, ast.Call):
        return False
    return around.torch_name(made.func) == "torch.load" or getattr(made.func, "attr", "") == "state_dict"


def _casts_name(around: Surroundings, node: ast.Call, name: str, *, any_dtype: bool) -> bool:
    """Whether a call casts the variable to a floating dtype; ``any_dtype``: to whatever ``dtype`` names, too."""
    function = node.func
    if not isinstance(function, ast.Attribute) or not _is_moved(function.value, name):
        return False
    if function.attr in _LOW_METHODS:
        return not node.args
    if function.attr not in ("to", "type"):
        return False
    values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if any(around.torch_name(value) in _LOW_DTYPES for value in values):
        return True
    return any_dtype and any(around.is_dtype(value) for value in values)


def _is_moved(node: ast.expr, name: str) -> bool:
    """Whether an expression is the variable, perhaps on another device: ``value.to(device)``."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute) and node.attr not in _MOVES:
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id == name


def _asks(around: Surroundings, test: ast.expr, name: str) -> bool:
    """Whether a test tells some of the tensors from others: by dtype, by name, by a type that is not any tensor's."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return False
    parts = list(ast.walk(test))
    if isinstance(test, ast.Call) and any(_of_any_tensor(around, part) for part in parts):
        return False
    asked = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return not asked.isdisjoint(_TESTS) or any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _of_any_tensor(around: Surroundings, node: ast.AST) -> bool:
    return around.torch_name(node) in ("torch.is_tensor", "torch.Tensor")
