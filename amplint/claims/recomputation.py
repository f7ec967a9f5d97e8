"""Functions whose backward runs again what forward was given to call, without the autocast state of that time."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import FunctionNode
from amplint.infer.syntax.bindings import paired
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.function_facts import AutogradFunction

_THROUGH = frozenset({"reversed", "enumerate", "zip", "list", "tuple"})


def recomputed(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """Where a Function's backward turns gradients on to call what its forward called, and where forward kept that."""
    for function in facts.autograd_functions:
        forward, backward = function.forward, function.backward
        if forward is None or backward is None or _keeps_state(function, around):
            continue
        kept = _kept(forward)
        named = _read_again(backward, kept)
        spoken: set[int] = set()
        for node in nodes_of_kind(backward, ast.Call):
            attribute = _attribute(node.func, backward, named)
            region = _enabling(node, backward, around) if attribute in kept else None
            if attribute is not None and region is not None and id(region) not in spoken:
                spoken.add(id(region))
                yield region, kept[attribute]


def _keeps_state(function: AutogradFunction, around: Surroundings) -> bool:
    """Whether a Function deals with autocast in any way, itself or by what it names and the file defines: functions
    that it calls, decorators that are made or chosen there."""
    if any("custom_bwd" in (decorator.name or "") for decorator in function.backward_decorators):
        return True
    named = {name.id: name for name in nodes_of_kind(function.node, ast.Name)}
    top = around.ancestors(function.node)
    module = next((ancestor for ancestor in top if isinstance(ancestor, ast.Module)), None)
    helpers = [
        s for s in (module.body if module is not None else []) if isinstance(s, FunctionNode) and s.name in named
    ]
    nodes = [function.node, *helpers, *(value for name in named.values() for value in around.given(name))]
    told = (around.torch_name(part) for node in nodes for part in ast.walk(node))
    return any("autocast" in name or name.endswith("custom_bwd") for name in told)


def _kept(forward: ast.FunctionDef) -> dict[str, ast.stmt]:
    """Arguments that forward calls, themselves or one of their items, and keeps: by the attribute of its context."""
    items = {
        target.id: node.iter
        for node in nodes_of_kind(forward, ast.For)
        for target in nodes_of_kind(node.target, ast.Name)
    }
    called: set[str] = set()
    for node in nodes_of_kind(forward, ast.Call):
        if isinstance(node.func, ast.Name):
            called.add(node.func.id)
            called.update(_names(items[node.func.id]) if node.func.id in items else ())
    parameters = {argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args)}
    return {
        target.attr: statement
        for statement, target, value in _pairs(forward)
        if isinstance(target, ast.Attribute) and isinstance(value, ast.Name) and value.id in called & parameters
    }


def _read_again(backward: ast.FunctionDef, kept: dict[str, ast.stmt]) -> dict[str, str]:
    """Variables of backward that are what was kept, or an item of it: by name, the attribute."""
    found: dict[str, str] = {}
    for _statement, target, value in _pairs(backward):
        if isinstance(target, ast.Name) and isinstance(value, ast.Attribute) and value.attr in kept:
            found[target.id] = value.attr
    for node in nodes_of_kind(backward, ast.For):
        read = [n.attr for n in nodes_of_kind(node.iter, ast.Attribute) if n.attr in kept]
        read += [found[name] for name in _names(node.iter) if name in found]
        for item in nodes_of_kind(node.target, ast.Name) if read else ():
            found[item.id] = read[0]
    return found


def _attribute(func: ast.expr, backward: ast.FunctionDef, named: dict[str, str]) -> str | None:
    """The attribute of the context that a call in backward goes to: ``ctx.run(x)``, or ``run(x)`` after it was read."""
    if isinstance(func, ast.Name):
        return named.get(func.id)
    arguments = [*backward.args.posonlyargs, *backward.args.args]
    context = arguments[0].arg if arguments else ""
    owner = func.value if isinstance(func, ast.Attribute) else None
    return (
        func.attr if isinstance(func, ast.Attribute) and isinstance(owner, ast.Name) and owner.id == context else None
    )


def _enabling(node: ast.AST, backward: ast.FunctionDef, around: Surroundings) -> ast.expr | None:
    """What turns gradients on around a node: an item of a with statement, or a decorator of backward."""
    for ancestor in around.ancestors(node):
        items = [item.context_expr for item in ancestor.items] if isinstance(ancestor, ast.With) else []
        if ancestor is backward:
            items = backward.decorator_list
        found = next((item for item in items if _turns_on(item, around)), None)
        if found is not None:
            return found
    return None


def _turns_on(item: ast.expr, around: Surroundings) -> bool:
    name = around.torch_name(item.func if isinstance(item, ast.Call) else item).rpartition(".")[2]
    on = isinstance(item, ast.Call) and [a.value for a in item.args if isinstance(a, ast.Constant)] == [True]
    return name == "enable_grad" or (name == "set_grad_enabled" and on)


def _pairs(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """The assignments of a function, each target with its own value."""
    for node in nodes_of_kind(function, ast.Assign):
        for target in node.targets:
            yield from ((node, one, other) for one, other in paired(target, node.value))


def _names(node: ast.expr) -> set[str]:
    """The variables that a loop goes through: ``blocks`` of ``reversed(blocks)``."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - _THROUGH
