"""Dataclasses that configure models: what their fields hold, and copies with other values in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.joining import options_of, unite
from amplint.infer.lattice.values import UNKNOWN, Const, Text, Value
from amplint.infer.names import classes
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.state.dispatch import call

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable

    from amplint.infer.state.frame import Frame


def usual(cls: Class, member: Value) -> Value:
    """A field's default, which whoever makes the object may choose otherwise."""
    if isinstance(member, Const) and isinstance(member.value, str) and classes.is_dataclass(cls):
        return Text(member.value)
    return member


def replaced(frame: Frame, value: Value, arguments: Arguments, node: ast.expr) -> Value:
    """``dataclasses.replace(value, **arguments)``: fields that something not known overlays are taken to be alike."""
    return unite(*(_copied(frame, option, arguments, node) for option in options_of(value)))


def _copied(frame: Frame, value: Value, arguments: Arguments, node: ast.expr) -> Value:
    if not isinstance(value, Instance):
        return UNKNOWN
    arguments = arguments.generalised()
    session = frame.session
    key: Hashable = ("replaced", value.key, tuple((n, v.key) for n, v in arguments.keywords.items()))
    found = session.memo.get(key)
    if found is None:
        changed = {name: given for name, given in arguments.keywords.items() if given is not UNKNOWN}
        found = session.memo[key] = Instance(value.cls, {**value.attributes, **changed}, value.open)
        session.keep_alive.append((value, arguments))
        completed = classes.find_member(value.cls, "__post_init__")
        if isinstance(completed, Function):
            call(frame, Bound(completed, found), Arguments(), node)
    return found
