"""Lists of layers that a module keeps as plain Python lists: torch neither converts nor moves what only they hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_REGISTERING = frozenset(("add_module", "register_module", "setattr", "__setattr__"))
_ADDING = frozenset(("append", "insert", "extend"))
_LOOKING = frozenset(("enumerate", "zip", "reversed", "iter"))
_TELLING = frozenset(
    (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.Call)
)
"""Kinds of node that do something with a list."""


class PlainLists(NamedTuple):
    """What a class does with the attributes of its objects.

    ``made``: it sets them to a list, tuple or dict of what it makes there, or that is empty, and to nothing else.
    ``handed``: it does more with them than look through them, call an item, and add what it makes there: others may
    register the items. ``registers``: it registers something by a call.
    """

    made: frozenset[str]
    handed: frozenset[str]
    registers: bool


@once_for_each_node
def plain_lists(cls: ast.ClassDef) -> PlainLists:
    """What a class does with lists of layers."""
    own = {f.args.args[0].arg for f in cls.body if isinstance(f, ast.FunctionDef) and f.args.args}

    def attribute(node: ast.AST) -> str | None:
        of = node.value if isinstance(node, ast.Attribute) else None
        return node.attr if isinstance(node, ast.Attribute) and isinstance(of, ast.Name) and of.id in own else None

    nodes = nodes_below(cls)
    telling = [node for node in nodes if node.__class__ in _TELLING]
    harmless = {id(place) for node in telling for place in _harmless(node)}
    stored = [(name, value) for node in telling for target, value in _stores(node) if (name := attribute(target))]
    read = (node for node in nodes if node.__class__ is ast.Attribute and id(node) not in harmless)
    return PlainLists(
        frozenset(name for name, _ in stored) - {name for name, value in stored if not _is_made(value)},
        frozenset(name for node in read if (name := attribute(node))),
        any(isinstance(node, ast.Call) and _called(node) in _REGISTERING for node in telling),
    )


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a statement assigns to, each with the value."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        yield node.target, node.value if isinstance(node, ast.AnnAssign) else None


def _harmless(node: ast.AST) -> Iterator[ast.expr]:
    """The places of a list that is only set, looked through, called by item, or added to."""
    yield from (target for target, _ in _stores(node))
    if isinstance(node, ast.For) and _only_uses(node.target, node.body):
        yield from _looked_through(node.iter)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        for part in node.generators:
            if _only_uses(part.target, [node.elt, *part.ifs]):
                yield from _looked_through(part.iter)
    if not isinstance(node, ast.Call):
        return
    name = _called(node)
    if name == "len" and isinstance(node.func, ast.Name):
        yield from node.args
    elif (
        name in _ADDING and isinstance(node.func, ast.Attribute) and all(_is_made(a, item=True) for a in node.args)
    ) or isinstance(node.func, ast.Subscript):
        yield node.func.value


def _looked_through(iterated: ast.expr) -> Iterator[ast.expr]:
    yield iterated
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id in _LOOKING:
        yield from iterated.args


def _only_uses(target: ast.expr, body: Sequence[ast.AST]) -> bool:
    """Whether a loop calls its items or asks them for attributes, and hands none of them on."""
    items = {node.id for node in nodes_below(target) if isinstance(node, ast.Name)}
    nodes = [node for part in body for node in nodes_below(part)]
    used = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    used |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    read = (node for node in nodes if isinstance(node, ast.Name) and node.id in items)
    return all(id(node) in used for node in read)


def _is_made(node: ast.expr | None, *, item: bool = False) -> bool:
    """Whether an expression makes a list anew of what it makes itself; ``item``: or is one item, or a position."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(isinstance(one, ast.Call) for one in node.elts)
    if isinstance(node, ast.ListComp):
        return isinstance(node.elt, ast.Call)
    if isinstance(node, (ast.Dict, ast.DictComp)):
        values = node.values if isinstance(node, ast.Dict) else [node.value]
        return all(isinstance(one, ast.Call) for one in values)
    return item and isinstance(node, (ast.Call, ast.Constant))


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
