"""What a loop runs over: where a list has few items that are known, it runs once for each, in order.

A loop over the layers of a module, however many they are, runs at least once: nobody builds one to hold none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import FLOATS
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.values import UNKNOWN, Builtin, Const, Layer, Number, Sequence, Tensor
from amplint.infer.state.dispatch import evaluate
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.control import Rounds
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.layer_lists import iterated

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame

MAX_UNROLLED = 8
"""Different items of a list for each of which a loop's body runs once, in order."""


@once_for_each_node
def grows(statement: ast.For | ast.AsyncFor) -> bool:
    """Whether the body of a ``for`` changes a list in a variable that it runs over."""
    names = {node.id for node in nodes_below(statement.iter) if isinstance(node, ast.Name)}
    return any(
        isinstance(node.value, ast.Name) and node.value.id in names
        for node in nodes_below(statement)
        if (isinstance(node, ast.Attribute) and node.attr in ("append", "extend", "insert"))
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    )


@once_for_each_node
def tests_number(statement: ast.For | ast.AsyncFor) -> bool:
    """Whether the body of a ``for`` over ``range(…)`` or ``enumerate(…)`` tests the number of the pass."""
    target = statement.target
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    if not isinstance(statement.iter, ast.Call) or not isinstance(target, ast.Name):
        return False
    tests = (node.test for node in nodes_below(statement) if isinstance(node, (ast.If, ast.IfExp)))
    return any(isinstance(node, ast.Name) and node.id == target.id for test in tests for node in nodes_below(test))


def first_of(frame: Frame, statement: ast.For | ast.AsyncFor, item: Value) -> Value | None:
    """What the first pass gets where the number that it begins with is known, and tested; else None."""
    if not tests_number(statement):
        return None
    call = statement.iter
    assert isinstance(call, ast.Call)
    callee = evaluate(frame, call.func)
    name = callee.name if isinstance(callee, Builtin) else None
    start: Value = Const(0)
    given = {"range": call.args[:1] if len(call.args) > 1 else [], "enumerate": call.args[1:2]}.get(name or "")
    if given is None or call.keywords:
        return None
    if given:
        start = evaluate(frame, given[0])
    if not isinstance(start, Const) or type(start.value) is not int:
        return None
    if name == "range":
        return start
    return Sequence((start, *item.items[1:])) if isinstance(item, Sequence) and item.items else None


def rounds_of(frame: Frame, statement: ast.For | ast.AsyncFor) -> Rounds:
    """What a ``for`` runs over."""
    rounds = _rounds(frame, statement)
    if rounds.items is not None:
        return rounds
    return rounds._replace(first=first_of(frame, statement, rounds.item))


def _rounds(frame: Frame, statement: ast.For | ast.AsyncFor) -> Rounds:
    source = evaluate(frame, statement.iter)
    held = source.children if isinstance(source, Layer) else source
    if isinstance(held, Sequence) and held.items == () and not held.mutable:
        return Rounds((), None, False)
    items = held.items if isinstance(held, Sequence) and not grows(statement) else None
    if items is not None and 0 < len(items) <= MAX_UNROLLED:
        if len(items) == 1 or len({item.key for item in items}) > 1:
            return Rounds(items, None, True)
        return Rounds(None, items[0], True)
    layers, source = isinstance(source, Layer), iterated(frame, source)
    if isinstance(source, Sequence):
        some = layers or bool(source.items or source.head or source.tail)
        return Rounds(None, element_of(frame.session, source), some)
    if isinstance(source, Tensor) and not source.maybe:
        return Rounds(None, source.part, False)
    return Rounds(None, UNKNOWN, False)


def added_up(before: Value | None, left: Value) -> Value | None:
    """What a variable holds where a pass begins, or behind the loop, that was a floating tensor without dimensions
    before, as ``torch.tensor(0.0)``, and that a pass left with dimensions; else None.

    In promotion it takes the part of a number.
    """
    if not isinstance(before, Tensor) or not isinstance(left, Tensor) or (before.dim, left.dim) != (0, 1):
        return None
    floating = all(lane.mask and not lane.mask & ~FLOATS for lane in before.dtypes)
    return unite(Number("float"), left) if floating else None


def unknown_behind(joined: Value | None, left: Value) -> Value | None:
    """What a variable holds behind a loop of which a pass leaves ``left`` unknown, in some scenario; else None.

    ``joined``: that or what it held before the loop. Of a tuple, each item is looked at.
    """
    if all(map(_is_unknown, options_of(left))):
        return left if joined is not None else None
    if isinstance(left, Sequence) and isinstance(joined, Sequence) and left.items and joined.items:
        if len(left.items) != len(joined.items):
            return None
        items = [unknown_behind(both, own) for both, own in zip(joined.items, left.items, strict=True)]
        if all(item is None for item in items):
            return None
        found = (both if own is None else own for both, own in zip(joined.items, items, strict=True))
        return replace(joined, items=tuple(found))
    if not isinstance(left, Tensor) or not isinstance(joined, Tensor) or all(lane.mask for lane in left.dtypes):
        return None
    lanes = zip(left.dtypes, joined.dtypes, strict=True)
    return replace(joined, dtypes=tuple(own if not own.mask else both for own, both in lanes))


def _is_unknown(value: Value) -> bool:
    """Whether nothing is known of a value, or that it is a tensor but its dtype in no scenario."""
    return value is UNKNOWN or (isinstance(value, Tensor) and not any(lane.mask for lane in value.dtypes))
