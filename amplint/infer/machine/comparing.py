"""Comparisons: what they give, and what dtypes, devices and versions of torch answer, by scenario."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.dtypes import BOOL
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Number,
    Sequence,
    Tensor,
    Value,
)
from amplint.infer.state.dispatch import evaluate
from amplint.infer.torch_model import versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.infer.lattice.dtypes import Lane
    from amplint.infer.state.frame import Frame

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
"""How Python compares two values that are known."""


def comparison(frame: Frame, node: ast.Compare) -> Value:
    """What a comparison gives: an answer for each scenario, a tensor of bool, or a bool that is not known."""
    operands = [evaluate(frame, node.left), *(evaluate(frame, c) for c in node.comparators)]
    left, right = operands[0], operands[1]
    if len(node.ops) == 1:
        of_dtypes = compare_dtypes(left, node.ops[0], right) if isinstance(left, DTypeValue) else None
        flag = of_dtypes or compare_versions(frame, left, node.ops[0], right)
        if flag is not None:
            return flag
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return Number("bool")
    if isinstance(operands[0], Device) and len(operands) == 2:
        yes, no = device_test(frame, operands[0], node.ops[0], operands[1])
        return Number("bool") if yes and no else Const(bool(yes))
    tensors = [o for o in operands if isinstance(o, Tensor)]
    if tensors and all(isinstance(o, (Tensor, Const, Number)) for o in operands):
        sure, host = any(not t.maybe for t in tensors), tensors[0].host
        together = host if all(t.host == host for t in tensors) else None
        return Tensor(frame.session.constant(BOOL), tensors[0].dim, maybe=not sure, host=together)
    return Number("bool") if all(isinstance(o, (Const, Number)) for o in operands) else UNKNOWN


_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def compare_versions(frame: Frame, left: Value, op: ast.cmpop, right: Value) -> AutocastFlag | None:
    """The answer of ``torch.__version__ >= "2.0"`` and the like; None where it cannot be told."""
    holds = versions.compared(left, right, COMPARISONS[type(op)]) if isinstance(op, _ORDER) else None
    return None if holds is None else versions.answer(frame.session, holds=holds)


def compare_dtypes(left: DTypeValue, op: ast.cmpop, right: Value) -> AutocastFlag | None:
    """The answer of ``left == right`` and the like for dtypes; None where it cannot be told."""
    wanted = dtype_options(right)
    if wanted is None or not isinstance(op, (ast.Eq, ast.Is, ast.In, ast.NotEq, ast.IsNot, ast.NotIn)):
        return None
    yes = no = 0
    for number, lane in enumerate(left.dtypes):
        can, cannot = _dtype_test(lane, [w[number] for w in wanted])
        yes |= 1 << number if can else 0
        no |= 1 << number if cannot else 0
    return AutocastFlag(yes, no) if isinstance(op, (ast.Eq, ast.Is, ast.In)) else AutocastFlag(no, yes)


def device_test(frame: Frame, device: Device, op: ast.cmpop, wanted: Value) -> tuple[int, int]:
    """A device's type against names; a tensor's own device is the one whose policy is judged.

    Of ``torch.device("cuda")`` a tensor's own differs, which has an index: only the host has none.
    """
    options = wanted.items if isinstance(wanted, Sequence) and wanted.items is not None else (wanted,)
    told = [o.value if isinstance(o, Const) else o.type for o in options if isinstance(o, (Const, Device))]
    names = [name for name in told if isinstance(name, str) and ":" not in name]
    if frame.session.device != "cpu" and any(isinstance(o, Device) and o.type != "cpu" for o in options):
        return frame.live, frame.live
    if not names or len(names) != len(options) or not isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return frame.live, frame.live
    found = (device.type or frame.session.device) in names
    return (frame.live, 0) if found == isinstance(op, (ast.Eq, ast.In)) else (0, frame.live)


def dtype_options(value: Value) -> list[tuple[Lane, ...]] | None:
    if isinstance(value, DTypeValue):
        return [value.dtypes]
    if isinstance(value, Sequence) and value.items:
        options = [item.dtypes for item in value.items if isinstance(item, DTypeValue)]
        return options if len(options) == len(value.items) else None
    return None


def _dtype_test(lane: Lane, wanted: list[Lane]) -> tuple[bool, bool]:
    """Whether a dtype can be, and can fail to be, one of those wanted."""
    if any(lane.symbol is not None and lane.symbol is w.symbol for w in wanted):
        return True, False
    if not lane.known or not all(w.known for w in wanted):
        return True, True
    mask = 0
    for w in wanted:
        mask |= w.mask
    exact = all(w.exact for w in wanted)
    can = bool(lane.mask & mask)
    cannot = bool(lane.mask & ~mask) or not exact
    return can, cannot
