"""Which values an analysis gave each expression of one file: what ``amplint dtypes`` shows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import merge, options_of
from amplint.infer.lattice.values import UNKNOWN, Mapping, Sequence, Tensor, Value
from amplint.infer.state.record import Recorder, Watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.activation import Activation

OBSERVED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute, ast.Name, ast.AugAssign)


class Observer(Recorder):
    """Also joins, for each expression of one file, the values that it had wherever it was evaluated.

    Where the program's user reaches an expression, what others would have to pass does not count.
    """

    observes = True

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, tuple[bool, ast.expr | ast.stmt, Value, int]] = {}

    def value(self, session: Watched, frame: Activation, node: ast.expr | ast.stmt, value: Value) -> None:
        if not isinstance(node, OBSERVED) or not frame.namespace.own:
            return
        by_user, _, known, live = seen = self._seen.get(id(node), (session.from_user, node, value, frame.live))
        if session.from_user > by_user:
            seen = (True, node, value, frame.live)
        elif session.from_user == by_user and (known is not value or live != frame.live):
            containers = isinstance(value, (Mapping, Sequence)) and type(value) is type(known)
            joined = known if containers else merge(session, known, live, value, frame.live)
            seen = (by_user, node, joined, live | frame.live)
        self._seen[id(node)] = seen

    def tensors(self, tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, Tensor | None, int]]:
        """Expressions that may be tensors, the tensor where one is known, and the scenarios that reach them."""
        cut = _cut_short(tree, self.unfinished)
        for _, node, value, live in self._seen.values():
            if node.lineno == 0:
                continue
            options = options_of(value)
            tensor = next((option for option in options if isinstance(option, Tensor)), None)
            if tensor is not None or UNKNOWN in options:
                unsure = UNKNOWN in options or (tensor is not None and tensor.unsure)
                known = not unsure and id(node) not in cut
                yield node, (tensor if known else None), live


def _cut_short(tree: ast.Module, unfinished: set[int]) -> set[int]:
    """``id`` of the nodes in functions that may have run with more than was seen: those that were not followed to their
    end, and what they mention."""
    if not unfinished:
        return set()
    functions: dict[str, list[ast.AST]] = {}
    pending: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault(node.name, []).append(node)
        if id(node) in unfinished:
            pending.append(node)
    found: set[int] = set()
    while pending:
        function = pending.pop()
        if id(function) in found:
            continue
        for node in ast.walk(function):
            found.add(id(node))
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            pending.extend(called for called in functions.get(name, ()) if id(called) not in found)
    return found
