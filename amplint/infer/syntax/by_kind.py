"""The nodes of some kinds in a tree, which is walked once however often it is asked for them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from amplint.infer.syntax.bodies import FIELDS, GAPS, children, once_for_each_node

if TYPE_CHECKING:
    import ast

A = TypeVar("A", bound="ast.AST")
B = TypeVar("B", bound="ast.AST")
C = TypeVar("C", bound="ast.AST")


@overload
def nodes_of_kind(root: ast.AST, kind: type[A], /) -> list[A]: ...
@overload
def nodes_of_kind(root: ast.AST, kind: type[A], other: type[B], /) -> list[A | B]: ...
@overload
def nodes_of_kind(root: ast.AST, kind: type[A], other: type[B], third: type[C], /) -> list[A | B | C]: ...
@overload
def nodes_of_kind(root: ast.AST, /, *kinds: type[ast.AST]) -> list[ast.AST]: ...
def nodes_of_kind(root: ast.AST, /, *kinds: type[ast.AST]) -> list[Any]:
    """Those of ``ast.walk(root)`` that are of the given classes, in its order.

    A kind is the very class of a node, not a base of it, and none of a context, an operator or an import alias.
    """
    below = _below(root)
    if len(kinds) == 1:
        places = below.places.get(kinds[0], [])
    else:
        places = sorted([place for kind in kinds for place in below.places.get(kind, ())])
    found = [below.nodes[place] for place in places]
    return [root, *found] if root.__class__ in kinds else found


class _Below(NamedTuple):
    """The nodes below a root in the order of ``ast.walk``, and the places there of each kind."""

    nodes: list[ast.AST]
    places: dict[type[ast.AST], list[int]]


@once_for_each_node
def _below(root: ast.AST) -> _Below:
    """Without the root, which would otherwise hold itself and wait for the garbage collector."""
    nodes = children(root)
    places: dict[type[ast.AST], list[int]] = defaultdict(list)
    extend, push = nodes.extend, nodes.append
    for place, node in enumerate(nodes):  # which grows meanwhile
        kind = node.__class__
        places[kind].append(place)
        for name in FIELDS[kind]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                extend([item for item in value if item is not None] if name in GAPS else value)
            elif value is not None:
                push(value)
    return _Below(nodes, places)
