"""Where code refuses every dtype that the scenarios pass: callers pass something else there.

A caller is taken to pass floating-point tensors. ``if ids.dtype != torch.long: raise TypeError`` shows that it does
not, so what is behind it runs, with integers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import AUTOCASTABLE
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import Tensor
from amplint.infer.machine.narrowing import narrow

if TYPE_CHECKING:
    from amplint.infer.lattice.dtypes import Lane
    from amplint.infer.state.frame import Frame


def refused(frame: Frame, statement: ast.If, yes: int, no: int) -> bool:
    """Whether a test with these answers lets an argument go on to raise alone, for a dtype that is only assumed."""
    raises = statement.body if yes else statement.orelse
    if not (yes or no) or (yes and no) or not raises or not isinstance(raises[-1], ast.Raise):
        return False
    return is_something_else(frame, statement.test, answer=not yes)


def is_something_else(frame: Frame, test: ast.expr, *, answer: bool) -> bool:
    """Whether an argument of an assumed dtype has none that a scenario decides where a test comes out as ``answer``."""
    asked = ((name, _lanes(frame, name)) for name in _asked(test))
    assumed = [name for name, lanes in asked if lanes and all(map(_is_passed, lanes))]
    if not assumed:
        return False
    before = frame.variables
    frame.variables = before.copy()
    narrow(frame, test, answer)
    found = [_lanes(frame, name) for name in assumed]
    frame.variables = before
    return any(lanes and all(lane.known and not lane.mask & AUTOCASTABLE for lane in lanes) for lanes in found)


def _asked(test: ast.expr) -> list[str]:
    """The variables whose dtype a test asks for."""
    attributes = (node for node in ast.walk(test) if isinstance(node, ast.Attribute) and node.attr == "dtype")
    return [node.value.id for node in attributes if isinstance(node.value, ast.Name)]


def _is_passed(lane: Lane) -> bool:
    """Whether a dtype is what a caller is taken to pass; in float32 runs that is not called an assumption."""
    return lane.assumed or lane.symbol is not None


def _lanes(frame: Frame, name: str) -> list[Lane]:
    """What is known of a variable's dtype in the scenarios that come here, if it is a tensor."""
    value = frame.variables.get(name)
    tensors = [option for option in options_of(value) if isinstance(option, Tensor)] if value is not None else []
    return [lane for tensor in tensors for number, lane in enumerate(tensor.dtypes) if frame.live >> number & 1]
