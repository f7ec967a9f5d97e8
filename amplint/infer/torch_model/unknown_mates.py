"""What surely is float32, or wider, where the weights are half, and goes where something unknown decides what happens.

An operation that wants one dtype raises there unless the unknown operand is float32 as well, and so does a module that
is handed in from outside, such as a backbone, unless it casts. Neither is told; what comes behind is hardly reached.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.values import UNKNOWN, Tensor
from amplint.infer.names import classes
from amplint.infer.names.definitions import Instance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame
    from amplint.infer.state.operand import Operand
    from amplint.infer.torch_model.torch_ops import Op

MODULE = "torch.nn.Module"
"""The class of a layer of which only that is known: an annotation promises no more."""


def beside_unknown(
    frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: Iterable[Operand], bound: Mapping[str, Value]
) -> None:
    """Note a strict operation of float32 and something of which nothing is known."""
    for group in op.strict:
        names = {name.rstrip("*") for name in group}
        if any(_is_unknown(bound.get(name)) for name in names):
            _note(frame, node, [operand.value for operand in operands if operand.name in names])


def _is_unknown(value: Value | None) -> bool:
    return value is UNKNOWN or (isinstance(value, Tensor) and not any(lane.mask for lane in value.dtypes))


def into_unknown(frame: Frame, arguments: Arguments, node: ast.expr) -> None:
    """Note a call of an attribute of a module, of which no more is known than that, or of its ``forward``, with float32
    first."""
    callee = node.func if isinstance(node, ast.Call) else None
    if isinstance(callee, ast.Attribute) and callee.attr == "forward":
        callee = callee.value
    held = callee.value if isinstance(callee, ast.Attribute) else None
    receiver = frame.receiver
    if not isinstance(held, ast.Name) or not isinstance(receiver, Instance) or not classes.is_module(receiver.cls):
        return
    if frame.variables.get(held.id) is receiver:
        _note(frame, node, [value for value in arguments.positional[:1] if isinstance(value, Tensor)])


def into_rows(frame: Frame, node: ast.expr | ast.stmt, container: Tensor, value: Value) -> None:
    """Note that something unknown, or low precision as a caller passes it, is written to rows of float32 that a tensor
    chooses."""
    if _is_unknown(value) or (isinstance(value, Tensor) and _is_half(frame, value)):
        _note(frame, node, [container])


def _is_half(frame: Frame, tensor: Tensor) -> bool:
    lanes = zip(frame.session.scenarios, tensor.dtypes, strict=True)
    return all(lane.mask & LOW for scenario, lane in lanes if scenario.parameters != "float32")


def indexes_by_array(index: ast.expr) -> bool:
    """Whether a part of an index is taken from an array with several dimensions, and is one itself: ``at[:, 0]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    inner = (part.slice for part in parts if isinstance(part, ast.Subscript))
    return any(isinstance(of, ast.Tuple) and any(isinstance(one, ast.Slice) for one in of.elts) for of in inner)


def _note(frame: Frame, node: ast.expr | ast.stmt, tensors: Iterable[Tensor]) -> None:
    """Note the scenarios with half weights, autocast off, in which the code itself makes one of the tensors float32, or
    wider, whatever callers pass."""
    if frame.making or frame.constructing is not None or frame.backward:
        return
    sure = [tensor for tensor in tensors if not (tensor.maybe or tensor.unsure or tensor.optional)]
    lanes = tuple(
        number
        for number, scenario in enumerate(frame.session.scenarios)
        if scenario.parameters != "float32"
        and frame.live >> number & 1
        and not frame.autocast[number].on
        and any(tensor.dtypes[number].wide for tensor in sure)
    )
    if lanes:
        frame.refuse(node, lanes)
