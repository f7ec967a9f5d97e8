"""Operations that low precision may not bear: constants out of its range, kernels that it lacks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import COMPLEX_HALF, LOW
from amplint.infer.lattice.values import Const, Limit, Tensor, Trait, Value, extreme_of
from amplint.infer.state.facts import Use
from amplint.infer.state.operand import Operand
from amplint.infer.torch_model.default_dtype import may_be_low
from amplint.infer.torch_model.mismatches import refuse
from amplint.infer.torch_model.ranges import LARGEST, refusing

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op


INITIALISATION = "torch.nn.init."
"""What fills the parameters of a module when it is made, before anything is cast."""
_READ_NUMBERS = ("masked_fill", "index_fill", "where")
"""Operations to whose dtype a 0-dim tensor is converted as a Python number is: run in torch 2.13, ``masked_fill`` and
``index_fill`` refuse one out of its range, ``where`` makes it infinite."""


def extreme_numbers(op: Op, bound: dict[str, Value]) -> dict[str, float | Limit]:
    """The extreme numbers among an operation's arguments, by parameter."""
    found = {}
    reads = op.name.rpartition(".")[2].rstrip("_") in _READ_NUMBERS
    for name, value in bound.items():
        number = value.number if reads and isinstance(value, Tensor) else extreme_of(value)
        if number is not None:
            found[name] = number
    return found


def counts(bound: dict[str, Value]) -> bool:
    """Whether an argument is a tensor of positions."""
    return any(isinstance(value, Tensor) and value.trait is Trait.COUNT for value in bound.values())


def note(
    frame: Frame,
    node: ast.expr | ast.stmt,
    op: Op,
    operands: list[Operand],
    numbers: dict[str, float | Limit],
    bound: dict[str, Value],
    arguments: Arguments,
) -> None:
    """Note an operation for the rules, where an operand may be low precision in a live scenario; in another file than
    the one that is checked, only that it raises.

    A constructor, and what it calls, runs before anything converts the module.
    """
    if frame.making or frame.constructing is not None or not _may_be_low(frame, operands):
        return
    if not frame.session.recorder.concerns(frame):
        _refuse(frame, node, op, operands[0].value, bound)
        return
    nodes = {name: written for i, name in enumerate(op.params) if (written := arguments.node(i, name)) is not None}
    nodes.update((key, written) for key, written in arguments.nodes.items() if isinstance(key, str))
    _record(frame, node, op.name, operands, numbers, bound, nodes)
    _refuse(frame, node, op, operands[0].value, bound)


def _refuse(frame: Frame, node: ast.expr | ast.stmt, op: Op, filled: Tensor, bound: dict[str, Value]) -> None:
    """Note the scenarios in which a tensor surely has a dtype whose range a number exceeds that the operation takes."""
    given = [bound.get(parameter) for parameter in refusing(op.name, frame.session.device)]
    numbers = [abs(number) for v in given if isinstance(v, Const) and isinstance(number := extreme_of(v), float)]
    if numbers:
        refuse(frame, node, filled, [bit for bit, largest in LARGEST.items() if max(numbers) > largest])


def _may_be_low(frame: Frame, operands: list[Operand]) -> bool:
    low = LOW | COMPLEX_HALF
    return any(lane.mask & low and frame.live >> i & 1 for o in operands for i, lane in enumerate(o.value.dtypes))


def _record(
    frame: Frame,
    node: ast.expr | ast.stmt,
    name: str,
    operands: list[Operand],
    numbers: dict[str, float | Limit],
    bound: dict[str, Value],
    nodes: dict[str, ast.expr],
) -> None:
    low = not name.startswith(INITIALISATION) or may_be_low(frame.session, frame.namespace)
    use = Use(node, name, tuple(operands), numbers, bound, nodes, frame.live, frame.in_module, frame.function, low)
    frame.session.recorder.use(frame, use)


def filled(frame: Frame, node: ast.expr, op: Op, made: Tensor, bound: dict[str, Value], arguments: Arguments) -> None:
    """Note a new tensor that is filled with an extreme number."""
    numbers = extreme_numbers(op, bound)
    if numbers and frame.session.recorder.concerns(frame):
        note(frame, node, op, [Operand("result", node, made)], numbers, bound, arguments)


def from_number(frame: Frame, node: ast.expr, name: str, made: Tensor, data: Value, arguments: Arguments) -> None:
    """Note ``torch.tensor(number)`` of an extreme number."""
    number, operand = extreme_of(data), Operand("result", node, made)
    if number is None or not frame.session.recorder.concerns(frame) or not _may_be_low(frame, [operand]):
        return
    nodes = {str(key) if key != 0 else "data": written for key, written in arguments.nodes.items()}
    _record(frame, node, name, [operand], {"data": number}, {"data": data}, nodes)


def held(made: Tensor, data: Value) -> float | Limit | None:
    """The extreme number that a 0-dim tensor was made of, where its dtype is known in every scenario and holds it."""
    holds = all(lane.known and not lane.mask & LOW for lane in made.dtypes)
    return extreme_of(data) if holds else None


def assigned(frame: Frame, target: ast.Subscript, container: Tensor, value: Value) -> None:
    """Note ``container[…] = number`` with an extreme number."""
    number, operand = extreme_of(value), Operand("self", target.value, container)
    statement = frame.statement
    if number is None or not isinstance(statement, ast.Assign) or target not in statement.targets:
        return
    if frame.session.recorder.concerns(frame) and _may_be_low(frame, [operand]):
        nodes = {"value": statement.value}
        _record(frame, statement, "torch.Tensor.__setitem__", [operand], {"value": number}, {"value": value}, nodes)
