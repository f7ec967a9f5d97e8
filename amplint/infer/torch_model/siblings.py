"""Tensors that one operation made in one dtype, as query, key and value, and that reach a compiled kernel in two.

Kernels that are written in Triton or bound as an ``autograd.Function`` see the dtypes as they come: autocast casts
nothing for them. Where an operation that autocast runs in float32, or a float32 table, widened one of them on the way,
the kernel gets it beside a half-precision one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.dtypes import FLOAT32, LOW
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.origins import deciding
from amplint.infer.lattice.values import Origin, Tensor, Value
from amplint.infer.names.definitions import Function
from amplint.infer.state.facts import Apart
from amplint.infer.state.operand import Operand
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame


_CASTS = frozenset(("to", "type", "type_as", "half", "bfloat16", "float"))


def enter_function(frame: Frame, forward: Value, arguments: Arguments, name: str) -> None:
    """``Function.apply(q, k, v, …)``, with the names of the parameters of its ``forward``, behind ``ctx`` if any.

    A ``forward`` that casts one of them itself, or has autocast do so, takes any dtypes.
    """
    while isinstance(forward, Decorated):
        if forward.cast_inputs is not None:
            return
        forward = forward.function
    if not isinstance(forward, Function) or _casts_parameters(forward.node):
        return
    spec = forward.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    _note(frame, zip(names, arguments.positional, strict=False), name)


def _casts_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    names = {a.arg for a in (*node.args.posonlyargs, *node.args.args)}
    methods = (child for child in nodes_below(node) if isinstance(child, ast.Attribute) and child.attr in _CASTS)
    return any(isinstance(method.value, ast.Name) and method.value.id in names for method in methods)


def launch(frame: Frame, arguments: Arguments, node: ast.expr) -> None:
    """``kernel[grid](q, k, v, …)``, with the names of the variables that are passed."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
        return
    given = [(arguments.nodes.get(place), value) for place, value in enumerate(arguments.positional)]
    named = [(node.id, value) for node, value in given if isinstance(node, ast.Name)]
    _note(frame, [*named, *arguments.keywords.items()], ast.unparse(node.func.value))


def _note(frame: Frame, given: Iterable[tuple[str, Value]], kernel: str) -> None:
    if frame.backward:
        return
    operands: list[Operand] = []
    for name, value in given:
        tensor = next((option for option in options_of(value) if isinstance(option, Tensor)), None)
        if tensor is not None and not tensor.maybe:
            operands.append(Operand(name, None, tensor))
    for wide in operands:
        for narrow in operands:
            found = [
                (lane, place)
                for lane in range(1, frame.session.lanes)
                if frame.live >> lane & 1
                and narrow.value.dtypes[lane].mask & LOW
                and not narrow.value.dtypes[lane].mask & ~LOW
                and (place := _widened(wide.value, lane)) is not None
                and _made_together(place, narrow.value, lane)
            ]
            if found and found[0][1].source.path == frame.session.project.own:
                place = found[0][1]
                lanes = [lane for lane, other in found if other.node is place.node]
                assert not isinstance(place.node, ast.arg)
                by_autocast = bool(place.autocast >> lanes[0] & 1)
                frame.session.recorder.apart(Apart(place.node, wide, narrow, kernel, by_autocast, tuple(lanes)))
                break


def _widened(tensor: Tensor, lane: int) -> Origin | None:
    """Where a half-precision tensor became float32 without a cast that is written there."""
    if tensor.dtypes[lane].mask != FLOAT32:
        return None
    place = deciding(tensor.origin, lane)
    if place is None or place.cast or place.placed or place.dtypes[lane].mask != FLOAT32:
        return None
    low = any(parent.dtypes[lane].mask & LOW and not parent.dtypes[lane].mask & ~LOW for parent in place.parents)
    return place if low and not isinstance(place.node, ast.arg) else None


def _made_together(place: Origin, narrow: Tensor, lane: int) -> bool:
    """Whether what an operation widened was made by the same operation as another tensor: two parts of a projection."""
    made = deciding(narrow.origin, lane)
    return made is not None and any(
        (source := deciding(parent, lane)) is not None and source.node is made.node for parent in place.parents
    )
