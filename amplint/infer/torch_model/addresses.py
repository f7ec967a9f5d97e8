"""Tensors handed to compiled code by their address: what reads them there knows no dtype but its own."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.infer.lattice.dtypes import FLOAT32
from amplint.infer.lattice.values import Made
from amplint.infer.state.facts import Addressed
from amplint.infer.torch_model.default_dtype import may_be_low

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.lattice.values import Origin, Tensor
    from amplint.infer.state.frame import Frame

_KEEPING = frozenset(("add", "discard", "get", "pop", "remove", "setdefault"))
"""Methods of sets and dicts."""
MAX_PATHS = 30
"""Places on the paths that meet in a tensor that are looked back through for what made it."""


def taken(frame: Frame, tensor: Tensor, node: ast.expr) -> None:
    """Note what made a tensor without a dtype whose ``data_ptr()`` is asked for.

    A tensor that a module keeps follows the module, and a table of float32 would too: only what goes to compiled code
    as it was made counts. An address that is a key or is compared only tells tensors apart.
    """
    session = frame.session
    if frame.statement is not None and _identifies(frame.statement, node):
        return
    for origin in _makers(tensor.origin):
        if origin.source.path == session.project.own and not isinstance(origin.node, ast.arg):
            place = Cause(Path(frame.namespace.path), frame.namespace.source.span(node), "its address is taken")
            low_default = may_be_low(session, frame.namespace)
            session.recorder.addressed(Addressed(origin.node, origin.what, (place,), low_default))


def _identifies(statement: ast.stmt, address: ast.expr) -> bool:
    """Whether an address stands where it is compared, or a key of a set or dict, so that no code reads there."""
    parents = {id(child): parent for parent in ast.walk(statement) for child in ast.iter_child_nodes(parent)}
    child: ast.AST = address
    while (parent := parents.get(id(child))) is not None:
        if isinstance(parent, (ast.Compare, ast.Subscript, ast.Set, ast.SetComp)):
            return True
        if isinstance(parent, ast.Call):
            called = parent.func
            return child is not called and isinstance(called, ast.Attribute) and called.attr in _KEEPING
        if isinstance(parent, ast.DictComp):
            return child is parent.key
        if isinstance(parent, ast.Dict):
            return child in parent.keys
        child = parent
    return False


def _makers(origin: Origin | None) -> Iterator[Origin]:
    """The constructors without dtype that a tensor may come from, on any path that leads to it."""
    pending = [origin]
    for _ in range(MAX_PATHS):
        place = pending.pop() if pending else None
        if place is None:
            continue
        if place.made is Made.DEFAULT and not place.parents and place.dtypes[0].mask == FLOAT32:
            yield place
        elif not place.what:
            pending.extend(place.parents)
