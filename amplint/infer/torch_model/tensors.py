"""Attributes and methods of tensors: casts, views, constructors from a tensor; all else through the op table."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.dtypes import ALIASES, BITS, BOOL, CASTS, INTEGERS, NAMES, UNKNOWN_LANE, Dtypes, Lane
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.kinds import KINDS, asked
from amplint.infer.lattice.tensor_types import TensorType
from amplint.infer.lattice.values import (
    UNKNOWN,
    Builtin,
    Const,
    Device,
    DTypeValue,
    External,
    Made,
    Origin,
    Tensor,
    TensorMethod,
    Trait,
    Value,
)
from amplint.infer.names.texts import spelled
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import addresses, memories, sparse, uses
from amplint.infer.torch_model.operations import apply
from amplint.infer.torch_model.placing import moved_elsewhere
from amplint.infer.torch_model.results import PYTHON, python_result
from amplint.infer.torch_model.torch_ops import find_method

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op

_ELSEWHERE = frozenset(("cuda", "xpu", "hpu", "ipu", "mtia", "pin_memory", "coalesce"))
"""Methods that give the same dtype, and cannot be measured on a CPU or on tensors that are not sparse."""


def attribute(frame: Frame, tensor: Tensor, name: str, node: ast.expr) -> Value:
    """``tensor.name``."""
    if name == "dtype":
        return DTypeValue(tensor.dtypes, False, tensor.origin)
    if name == "device":
        return Device(None)
    if name in memories.LIES_ON:
        return memories.lies_on(frame, name, host=bool(tensor.host))
    op = find_method(name, frame.session.torch_version)
    if op is not None and op.attribute:
        return _read(frame, tensor, op, node)
    if name in ("weight", "bias") and tensor.maybe and tensor.origin is not None:
        return _of_given(frame, tensor.origin, name, node)
    if tensor.maybe and name.startswith("_"):
        return UNKNOWN
    return TensorMethod(tensor, name, node.value if isinstance(node, ast.Attribute) else None)


def _of_given(frame: Frame, given: Origin, name: str, node: ast.expr) -> Value:
    """A parameter of a module that a constructor was given, taken to have what parameters have in each scenario;
    unknown where something else is asked for its weight."""
    if id(given.node) not in frame.session.given:
        return UNKNOWN
    lanes = tuple(
        Lane(BITS[scenario.parameters], assumed=scenario.parameters != "float32")
        for scenario in frame.session.scenarios
    )
    what = f"{name} of the module that is passed as `{getattr(given.node, 'arg', '')}`"
    return Tensor(lanes, 1, replace(frame.here(node, what, lanes), placed=True), leaf=True, optional=name == "bias")


def _read(frame: Frame, tensor: Tensor, op: Op, node: ast.expr) -> Value:
    """An attribute that is no method."""
    if op.passes:
        gradient = op.name == "torch.Tensor.grad"
        learned = gradient and tensor.leaf
        return replace(
            tensor,
            leaf=False,
            maybe=tensor.maybe or (gradient and not learned),
            optional=tensor.optional or learned,
        )
    if isinstance(op.result, str) and op.result.startswith(PYTHON):
        return python_result(op.result, [])
    return apply(frame, op, Arguments([tensor], {}, {}), node)


def call_method(frame: Frame, method: TensorMethod, arguments: Arguments, node: ast.expr) -> Value:
    """``tensor.name(...)``."""
    tensor, name = method.tensor, method.name
    if name in ("cpu", "cuda"):
        moved = replace(tensor, leaf=False, host=memories.named(frame, Device(name)))
        return moved if name == "cpu" else moved_elsewhere(frame, tensor, moved)
    if name in CASTS and not arguments.positional:
        return cast(frame, tensor, tuple(Lane(CASTS[name]) for _ in tensor.dtypes), node, f"cast by .{name}()", True)
    if name in KINDS:
        return asked(tensor.dtypes, name)
    if name == "to":
        return _to(frame, tensor, arguments, node)
    if name in ("type", "type_as"):
        return _type(frame, tensor, name, arguments, node)
    if name == "view" and arguments.positional and isinstance(arguments.positional[0], DTypeValue):
        return Tensor(arguments.positional[0].dtypes, tensor.dim)
    if name in sparse.CONVERSIONS:
        other = "layout" in arguments.keywords
        return replace(tensor, leaf=False, dim=1, trait=Trait.COMPRESSED if other else sparse.CONVERSIONS[name])
    if name == "data_ptr":
        addresses.taken(frame, tensor, node)
    op = find_method(name, frame.session.torch_version)
    if op is not None:
        if op.creates:
            made = _new(frame, tensor, arguments, node)
            if isinstance(made, Tensor):
                shifted = arguments.shifted((tensor, method.node))
                uses.filled(frame, node, op, made, shifted.bind(op.params), shifted)
            return made
        # with more arguments than torch takes: what was taken for a tensor is none
        if tensor.maybe and op.strict and len(arguments.positional) >= len(op.params):
            return UNKNOWN
        return apply(frame, op, arguments.shifted((tensor, method.node)), node)
    return replace(tensor, leaf=False) if name in _ELSEWHERE else UNKNOWN


def cast(
    frame: Frame,
    tensor: Tensor,
    dtypes: Dtypes,
    node: ast.expr,
    what: str,
    written: bool,
    model: Origin | None = None,
) -> Tensor:
    """A tensor cast to given dtypes.

    ``written``: the dtype is spelled out in the source; else ``model`` is where the dtype it follows came from.
    """
    frame.session.recorder.cast(frame, node, tensor, dtypes, written, model)
    if written and tensor.origin is not None and tensor.origin.placed and (frame.making or frame.constructing):
        dtypes = _as_made(frame, tensor.dtypes, tensor.origin, dtypes)
    origin = frame.here(node, what, dtypes, *((model,) if not written else ()))
    converted = written and all(lane.known and not lane.mask & ~(INTEGERS | BOOL) for lane in tensor.dtypes)
    return Tensor(
        dtypes,
        tensor.dim,
        replace(origin, cast=written, made=Made.CONVERTED if converted else None),
        maybe=False,
        explicit=written,
        gradient=tensor.gradient,
        trait=tensor.trait,
        host=tensor.host,
    )


def _as_made(frame: Frame, placed: Dtypes, origin: Origin, wanted: Dtypes) -> Dtypes:
    """What a constructor's cast of a parameter or buffer gives: what has that dtype already is handed back, and is
    converted with its module later."""
    made = origin.parents[0].dtypes if origin.parents else placed
    lanes = zip(frame.session.scenarios, placed, made, wanted, strict=True)
    return tuple(own if (own if s.keeps_explicit else before) == to else to for s, own, before, to in lanes)


def _to(frame: Frame, tensor: Tensor, arguments: Arguments, node: ast.expr) -> Value:
    """``tensor.to(...)``: cast, moved, or both."""
    value = _converted(frame, tensor, arguments, node)
    if not isinstance(value, Tensor):
        return value
    given = (*arguments.positional[:2], *arguments.keywords.values())
    moves = [argument for argument in given if not _stays(argument)]
    if len(moves) > 1 or arguments.unknown:
        return replace(moved_elsewhere(frame, tensor, value), host=None)
    if not moves:
        return replace(value, host=tensor.host)
    if memories.named(frame, moves[0]) is not True:
        value = moved_elsewhere(frame, tensor, value)
    return replace(value, host=moves[0].host if isinstance(moves[0], Tensor) else memories.named(frame, moves[0]))


def _stays(value: Value) -> bool:
    """Whether an argument of ``.to()`` names no memory."""
    return isinstance(value, DTypeValue) or (isinstance(value, Const) and isinstance(value.value, bool))


def _converted(frame: Frame, tensor: Tensor, arguments: Arguments, node: ast.expr) -> Value:
    target: Value | None = arguments.keywords.get("dtype") or arguments.keywords.get("other")
    if target is None and len(arguments.positional) > 1 and _names_dtype(arguments.positional[1]):
        target = arguments.positional[1]
    elif target is None:
        for value in arguments.positional[:2]:
            for option in map(_possible_dtype, options_of(value)):
                if isinstance(option, (DTypeValue, Tensor)) or option is UNKNOWN:
                    target = option if target is None or option is UNKNOWN else target
    if target is None:
        return replace(tensor, leaf=False)
    text = spelled(node.args[0]) if isinstance(node, ast.Call) and node.args else "dtype"
    what = f"cast by .to({text if len(text) <= 40 else '…'})"
    if isinstance(target, DTypeValue):
        return cast(frame, tensor, target.dtypes, node, what, target.written, target.origin)
    if isinstance(target, Tensor) and (not target.maybe or target.dim == 1):
        return replace(cast(frame, tensor, target.dtypes, node, what, False, target.origin), maybe=target.maybe)
    if isinstance(target, Tensor):
        dtypes = tuple(
            Lane(own.mask | other.mask, None, True, True)
            for own, other in zip(tensor.dtypes, target.dtypes, strict=True)
        )
        return Tensor(dtypes, tensor.dim, tensor.origin)
    if isinstance(target, Const) and target.value is None:
        return replace(tensor, leaf=False)
    unknown = frame.session.unknown
    if _names_dtype(target):
        frame.session.recorder.cast(frame, node, tensor, unknown, False)
    return Tensor(unknown, tensor.dim)


def _possible_dtype(value: Value) -> Value:
    """A value of ``.to()``'s argument; UNKNOWN for an attribute of what is not known, and for what another package has:
    each may be a dtype as well as a device."""
    return UNKNOWN if isinstance(value, TensorMethod | Builtin | External) else value


def _names_dtype(value: Value) -> bool:
    """Whether a value is a dtype, or None instead."""
    return any(isinstance(option, DTypeValue) for option in options_of(value))


_TYPE_STRINGS = {
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Bool": "bool",
    "Byte": "uint8",
}


def dtype_of_tensor_type(name: str) -> str | None:
    """The dtype of a legacy type name such as ``torch.cuda.FloatTensor``."""
    last = name.rsplit(".", 1)[-1]
    return _TYPE_STRINGS.get(last.removesuffix("Tensor")) if last.endswith("Tensor") else None


def host_of_tensor_type(frame: Frame, name: str) -> bool | None:
    """Whether a tensor of a legacy type such as ``torch.cuda.FloatTensor`` lies in the host's memory; ``torch.sparse``
    has others of its own."""
    *_, holder, _ = ("", *(part for part in name.split(".") if part != "sparse"))
    return memories.named(frame, Device("cpu" if holder in ("", "torch") else holder))


def _type(frame: Frame, tensor: Tensor, name: str, arguments: Arguments, node: ast.expr) -> Value:
    value = arguments.positional[0] if arguments.positional else arguments.keywords.get("dtype")
    if value is None:
        return TensorType(tensor) if name == "type" else UNKNOWN
    if isinstance(value, TensorType):
        alike = value.tensor
        moved = replace(tensor, host=alike.host)
        return cast(frame, moved, alike.dtypes, node, "cast by .type()", False, alike.origin)
    if name == "type_as" and isinstance(value, Tensor):
        moved = replace(tensor, host=value.host)
        return cast(frame, moved, value.dtypes, node, "cast by .type_as()", False, value.origin)
    if isinstance(value, DTypeValue):
        return cast(frame, tensor, value.dtypes, node, "cast by .type()", value.written, value.origin)
    spelled = value.value if isinstance(value, Const) else getattr(value, "name", None)
    dtype = dtype_of_tensor_type(spelled) if isinstance(spelled, str) else None
    if isinstance(spelled, str) and dtype is not None:
        lanes = tuple(Lane(BITS[dtype]) for _ in tensor.dtypes)
        moved = replace(tensor, host=host_of_tensor_type(frame, spelled))
        return cast(frame, moved, lanes, node, "cast by .type()", True)
    return Tensor(tuple(UNKNOWN_LANE for _ in tensor.dtypes), tensor.dim)


def _new(frame: Frame, tensor: Tensor, arguments: Arguments, node: ast.expr) -> Value:
    dtype = arguments.keywords.get("dtype")
    host = tensor.host if "device" not in arguments.keywords and not arguments.unknown else None
    if dtype is None or (isinstance(dtype, Const) and dtype.value is None):
        return Tensor(tensor.dtypes, 1, tensor.origin, host=host)
    if isinstance(dtype, DTypeValue):
        origin = frame.here(node, "created with this dtype", dtype.dtypes)
        made = Made.WRITTEN if dtype.written else None
        made_here = replace(origin, cast=dtype.written, made=made)
        return Tensor(dtype.dtypes, 1, made_here, explicit=dtype.written, host=host)
    return Tensor(frame.session.unknown, 1, host=host)


def unknown_method(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A method of something that is not known: a cast still fixes the dtype, if it is a tensor at all."""
    blank = Tensor(frame.session.unknown, None, maybe=True)
    if name in CASTS and not arguments.positional:
        return call_method(frame, TensorMethod(blank, name), arguments, node)
    if name == "to":
        result = _to(frame, blank, arguments, node)
        return result if isinstance(result, Tensor) and any(lane.known for lane in result.dtypes) else UNKNOWN
    if name in ("type", "type_as"):
        return _type(frame, blank, name, arguments, node)
    return UNKNOWN


def is_dtype_name(name: str) -> bool:
    return name in NAMES or name in ALIASES
