"""What is not reached, because an operation that runs before it raises."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer.state.facts import Kind
from amplint.infer.state.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence as Items

    from amplint.infer.state.activation import Activation
    from amplint.infer.state.facts import Conflict
    from amplint.source import Span


_KINDS = (Kind.ATTENTION, Kind.INDEX_WRITE, Kind.MIXED, Kind.CONSTANT, Kind.TABLE)


def note_failure(frame: Activation, conflict: Conflict, *, sure: bool) -> None:
    """Note what raises for all that runs behind it: in this activation, and, outside of branches, in its callers."""
    maker = _maker_of(conflict)
    if sure or maker is not None:
        scenarios = frozenset(conflict.scenarios)
        _note(frame, Failure(conflict.node, scenarios, frame.path, sure, _made(conflict), maker))


def note_missing_kernel(frame: Activation, node: ast.expr | ast.stmt, scenarios: Items[str]) -> None:
    """Note what has no kernel for its operand: casts elsewhere do not help it, so nothing behind it is reached."""
    _note(frame, Failure(node, frozenset(scenarios), frame.path, sure=True, made=None, maker=None, last=True))


def _note(frame: Activation, failure: Failure) -> None:
    activation: Activation | None = frame
    while activation is not None and activation.function:
        activation.failures.append(replace(failure, path=activation.path))
        activation = activation.caller if not activation.path else None


def hand_on(frame: Activation, failures: Items[Failure]) -> None:
    """What raises in a function that is called once more, with what it was called with before."""
    for failure in failures:
        _note(frame, failure)


def branches_met(frame: Activation, yes: tuple[int, ...], no: tuple[int, ...]) -> None:
    """Two branches, of these paths, were followed: what raises in both raises whichever is taken."""
    if not frame.failures or yes == no:
        return
    others = [failure for failure in frame.failures if failure.path == no]
    for failure in [failure for failure in frame.failures if failure.path == yes]:
        for other in others:
            both = failure.scenarios & other.scenarios
            if both and (failure.sure, failure.made, failure.maker) == (other.sure, other.made, other.maker):
                _note(frame, replace(failure, scenarios=both))
                break


def raised_before(frame: Activation, conflict: Conflict) -> Items[int]:
    """What raises on the way to an operation in every scenario in which that would, by ``id``; nothing where it is
    reached.

    Another tensor of a dtype of its own is a mistake of its own, as are a cast that autocast undoes and a region that
    is left.
    """
    made, maker = _made(conflict), _maker_of(conflict)
    if conflict.kind not in _KINDS and not (conflict.kind is Kind.UPCAST and made is not None):
        return ()
    rest, found = set(conflict.scenarios), []
    activation: Activation | None = frame
    while activation is not None and rest:
        for failure in activation.failures:
            applies = failure.last or (failure.sure and made in (None, failure.made))
            applies |= not failure.sure and maker is not None and maker == failure.maker
            if applies and failure.node is not conflict.node and _leads(failure.path, activation.path):
                found += [id(failure.node)] if rest & failure.scenarios else []
                rest -= failure.scenarios
        activation = activation.caller
    return () if rest else found


def _leads(earlier: tuple[int, ...], path: tuple[int, ...]) -> bool:
    return path[: len(earlier)] == earlier


def _made(conflict: Conflict) -> tuple[str, Span] | None:
    """What made the operand that is out of place, by file and place; the file is left out for a cast."""
    if conflict.kind is Kind.UPCAST:
        return ("", conflict.culprit.span) if conflict.culprit is not None else None
    return (conflict.made.maker.filename, conflict.made.maker.span) if conflict.made is not None else None


def _maker_of(conflict: Conflict) -> tuple[str, int] | None:
    """The function that made the operand that is out of place; None for one made at the top level of a file."""
    if conflict.made is None:
        return None
    origin, inner = conflict.made.maker, None
    for node in ast.walk(origin.source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            within = node.lineno <= origin.node.lineno <= (node.end_lineno or node.lineno)
            if within and (inner is None or node.lineno > inner.lineno):
                inner = node
    return (origin.filename, inner.lineno) if inner is not None else None
