"""Tensors handed to compiled code by their address: what reads them there knows no dtype but its own."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.infer.dtypes import FLOAT32
from amplint.infer.facts import Addressed
from amplint.infer.values import Made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.frame import Frame
    from amplint.infer.values import Origin, Tensor

MAX_PATHS = 30
"""Places on the paths that meet in a tensor that are looked back through for what made it."""


def taken(frame: Frame, tensor: Tensor, node: ast.expr) -> None:
    """Note what made a tensor without a dtype whose ``data_ptr()`` is asked for.

    A tensor that a module keeps follows the module, and a table of float32 would too: only what goes to compiled code
    as it was made counts.
    """
    session = frame.session
    for origin in _makers(tensor.origin):
        if origin.source.path == session.project.own and not isinstance(origin.node, ast.arg):
            place = Cause(Path(frame.namespace.path), frame.namespace.source.span(node), "its address is taken")
            session.recorder.addressed(Addressed(origin.node, origin.what, (place,)))


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
