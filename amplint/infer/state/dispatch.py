"""The interpreter's parts that need each other, for each other: they are handed down instead of imported in a ring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence as Items

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame


class Machine(Protocol):
    """The interpreter's parts that need each other, and that all below them need."""

    def evaluate(self, frame: Frame, node: ast.expr) -> Value: ...

    def execute(self, frame: Frame, body: Items[ast.stmt]) -> None: ...

    def call(self, frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> Value: ...

    def get_attribute(self, frame: Frame, value: Value, name: str, node: ast.expr) -> Value: ...

    def set_attribute(self, frame: Frame, value: Value, name: str, new: Value) -> None: ...

    def assign(self, frame: Frame, target: ast.expr, value: Value) -> None: ...


_machines: list[Machine] = []


def interpret_by(machine: Machine) -> None:
    """From here on these are the parts."""
    _machines[:] = [machine]


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression."""
    return _machines[0].evaluate(frame, node)


def execute(frame: Frame, body: Items[ast.stmt]) -> None:
    """Run statements."""
    _machines[0].execute(frame, body)


def call(frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> Value:
    """Call a value; ``node`` is where findings about the call lie."""
    return _machines[0].call(frame, callee, arguments, node)


def get_attribute(frame: Frame, value: Value, name: str, node: ast.expr) -> Value:
    """``value.name``."""
    return _machines[0].get_attribute(frame, value, name, node)


def set_attribute(frame: Frame, value: Value, name: str, new: Value) -> None:
    """``value.name = new``."""
    _machines[0].set_attribute(frame, value, name, new)


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a target to a value."""
    _machines[0].assign(frame, target, value)
