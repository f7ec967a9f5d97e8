"""Calling a module whose class, or a base of it in the project, has a ``__call__``: that runs around ``forward``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.values import UNKNOWN, Value
from amplint.infer.machine import objects
from amplint.infer.names.classes import find_member, is_module
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.state.dispatch import call

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame


def own_call(cls: Class) -> Function | None:
    """The ``__call__`` that the project puts around the ``forward`` of a module."""
    return _function(find_member(cls, "__call__")) if is_module(cls) else None


def takes_what_forward_does(cls: Class) -> bool:
    """Whether a module has a ``__call__`` of its own that can be given what its ``forward`` is."""
    around, forward = own_call(cls), _function(find_member(cls, "forward"))
    if around is None or forward is None:
        return False
    return around.node.args.vararg is not None or _positional(around) >= _positional(forward)


def call_around(frame: Frame, instance: Instance, arguments: Arguments, node: ast.expr) -> Value | None:
    """What calling a module gives by a ``__call__`` of its own; None where none is seen to come to ``forward``."""
    forward = _function(find_member(instance.cls, "forward"))
    if own_call(instance.cls) is None or forward is None:
        return None
    under = frame.session.called_under
    before = under.pop(id(forward.node), None)
    result = call(frame, objects.get_attribute(frame, instance, "__call__", node), arguments, node)
    reached = id(forward.node) in under
    if before is not None:
        under[id(forward.node)] = before
    return result if reached else None if frame.live else UNKNOWN


def _function(member: Value | None) -> Function | None:
    while isinstance(member, Decorated):
        member = member.function
    return member if isinstance(member, Function) and not isinstance(member.node, ast.Lambda) else None


def _positional(function: Function) -> int:
    return len(function.node.args.posonlyargs) + len(function.node.args.args)
