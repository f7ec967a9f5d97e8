"""Classes that make objects of a class that they are handed: ``ResNet(block=BasicBlock)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.references import references
from amplint.project.mentions import Function, definitions, made_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator


@once_for_each_node
def makers(tree: ast.Module) -> list[tuple[ast.ClassDef, str]]:
    """Classes at the top of a file, each with a parameter of its constructor that it calls, itself or in a method that
    it passes it to, for an attribute.

    One that is a layer of torch by default (``act=nn.GELU``) is handed others like it.
    """
    classes = (definition for definition in definitions(tree).values() if isinstance(definition, ast.ClassDef))
    torch = {id(reference.node) for reference in references(tree)}
    return [(cls, parameter) for cls in classes for parameter in _makes(cls, torch)]


def _makes(cls: ast.ClassDef, torch: set[int]) -> Iterator[str]:
    methods = {s.name: s for s in cls.body if isinstance(s, Function)}
    constructor = methods.get("__init__")
    if constructor is None:
        return
    stored = {name for names in made_attributes(cls).values() for name in names}
    called = {name: _called(method) for name, method in methods.items()}
    passed = {
        given.id
        for call in nodes_below(constructor)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods
        for parameter, given in _bound(call, methods[call.func.attr])
        if isinstance(given, ast.Name) and parameter in called[call.func.attr]
    }
    for parameter, default in _parameters(constructor):
        if parameter in stored & (called["__init__"] | passed) and id(default) not in torch:
            yield parameter


def _called(method: Function) -> set[str]:
    """The parameters of a method that it calls."""
    names = {name for name, _ in _parameters(method)}
    calls = (node.func for node in nodes_below(method) if isinstance(node, ast.Call))
    return names.intersection(called.id for called in calls if isinstance(called, ast.Name))


def _parameters(method: Function) -> Iterator[tuple[str, ast.expr | None]]:
    """The parameters behind the first, each with its default."""
    spec = method.args
    placed = [*spec.posonlyargs, *spec.args]
    without = len(placed) - len(spec.defaults)
    yield from zip([a.arg for a in placed], [*[None] * without, *spec.defaults], strict=True)
    yield from zip([a.arg for a in spec.kwonlyargs], spec.kw_defaults, strict=True)


def _bound(call: ast.Call, method: Function) -> Iterator[tuple[str, ast.expr]]:
    """The parameters of a method of the object that a call fills, each with what it gets."""
    names = [name for name, _ in _parameters(method)][1:]
    yield from zip(names, call.args, strict=False)
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
