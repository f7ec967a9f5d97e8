"""Loops: a body runs until it leaves nothing new, then what still changes is widened to unknown.

Where a list has few items that are known, it runs once for each, in order.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.lattice.joining import element_of
from amplint.infer.lattice.values import UNKNOWN, Layer, Sequence, Tensor, Value
from amplint.infer.machine.guards import narrow, split
from amplint.infer.state.activation import Env
from amplint.infer.state.dispatch import assign, evaluate, execute
from amplint.infer.state.meeting import environment, go_on, met, met_all, unlike
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.torch_model.layer_lists import iterated

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

Loop = ast.For | ast.AsyncFor | ast.While
MAX_PASSES = 3
"""Passes over a body after which what it still changes is unknown."""
MAX_WIDENED = 2
"""Further passes, with that unknown: in the last one everything that the loop changes."""
MAX_UNROLLED = 4
"""Different items of a list for each of which a loop's body runs once, in order."""


class _Range(NamedTuple):
    """What a loop runs over: ``items`` one after another, or else ``item`` any number of times."""

    items: tuple[Value, ...] | None
    item: Value | None
    some: bool
    """Whether it runs at least once."""


def loop(frame: Frame, statement: Loop) -> None:
    """Run a loop, its ``else`` where it ends by itself, and go on where either or a ``break`` leads."""
    over = None if isinstance(statement, ast.While) else _range(frame, statement)
    block, breaks, continues = frame.block, frame.breaks, frame.continues
    frame.block, frame.breaks = id(statement.body), []
    frame.branches += 1
    if over is not None and over.items is not None:
        for item in over.items:
            _go_round(frame, statement, item)
    else:
        _until_settled(frame, statement, over)
    left, frame.breaks, frame.continues = frame.breaks, breaks, continues
    frame.block = block
    if not left:
        frame.branches -= 1
        execute(frame, statement.orelse)
        return
    execute(frame, statement.orelse)
    frame.branches -= 1
    end = Env(frame.live, frame.variables)
    frame.live, frame.variables = met(frame.session, end, met_all(frame.session, left))


def _go_round(frame: Frame, statement: Loop, item: Value | None) -> Env:
    """One pass, from where the function is now to where the next would begin; gives where the loop ends before it."""
    ended = Env(0, {})
    if isinstance(statement, ast.While):
        yes, no = split(frame, statement.test)
        if no:
            here = environment(frame)
            frame.live = no
            narrow(frame, statement.test, False)
            ended = environment(frame)
            go_on(frame, here)
        frame.live = yes
        narrow(frame, statement.test, True)
    else:
        ended = environment(frame)
        assign(frame, statement.target, item or UNKNOWN)
    frame.continues = []
    execute(frame, statement.body)
    end = met_all(frame.session, [Env(frame.live, frame.variables), *frame.continues])
    frame.live, frame.variables = end.live, end.variables
    if frame.catches:
        frame.may_raise()
    return ended


def _until_settled(frame: Frame, statement: Loop, over: _Range | None) -> None:
    """Run the body from what leads to it, before the loop and from its own end, until that is all there is."""
    session = frame.session
    head, item = environment(frame), over.item if over is not None else None
    first, left = head, len(frame.breaks)
    for number in range(MAX_PASSES + MAX_WIDENED):
        go_on(frame, head)
        if number and not isinstance(statement, ast.While) and _grows(statement):
            item = _range(frame, statement).item
        heap = session.mutations
        del frame.breaks[left:]
        ended = _go_round(frame, statement, item)
        end = Env(frame.live, frame.variables)
        onward = met(session, head, end)
        changed = unlike(head, onward, known=number >= MAX_PASSES)
        if not changed and onward.live == head.live and heap == session.mutations:
            break
        if number >= MAX_PASSES - 1:
            if number == MAX_PASSES + MAX_WIDENED - 2:
                changed = [*changed, *unlike(first, onward)]
            onward = Env(onward.live, {**onward.variables, **dict.fromkeys(changed, UNKNOWN)})
        head = onward
    if over is not None and over.some:
        frame.live, frame.variables = end.live, end.variables
    elif over is not None:
        frame.live, frame.variables = met(session, head, end)
    else:
        frame.live, frame.variables = ended.live, ended.variables


@once_for_each_node
def _grows(statement: ast.For | ast.AsyncFor) -> bool:
    """Whether the body of a ``for`` changes a list in a variable that it runs over."""
    names = {node.id for node in nodes_below(statement.iter) if isinstance(node, ast.Name)}
    return any(
        isinstance(node.value, ast.Name) and node.value.id in names
        for node in nodes_below(statement)
        if (isinstance(node, ast.Attribute) and node.attr in ("append", "extend", "insert"))
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    )


def _range(frame: Frame, statement: ast.For | ast.AsyncFor) -> _Range:
    """What a ``for`` runs over."""
    source = evaluate(frame, statement.iter)
    held = source.children if isinstance(source, Layer) else source
    if isinstance(held, Sequence) and held.items == () and not held.mutable:
        return _Range((), None, False)
    items = held.items if isinstance(held, Sequence) and not _grows(statement) else None
    if items is not None and 0 < len(items) <= MAX_UNROLLED:
        if len(items) == 1 or len({item.key for item in items}) > 1:
            return _Range(items, None, True)
        return _Range(None, items[0], True)
    source = iterated(frame, source)
    if isinstance(source, Sequence):
        return _Range(None, element_of(frame.session, source), bool(source.items))
    if isinstance(source, Tensor) and not source.maybe:
        return _Range(None, Tensor(source.dtypes, None, source.origin), False)
    return _Range(None, UNKNOWN, False)
