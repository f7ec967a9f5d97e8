"""New tensors: which dtype they have, and where they lie."""

from __future__ import annotations

import ast
from functools import reduce
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BITS, FLOAT32, FLOATS, INTEGERS, Dtypes, Lane, join
from amplint.infer.lattice.joining import is_none, number_kind, options_of
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    DTypeValue,
    Made,
    Number,
    Sequence,
    Tensor,
    Trait,
    Value,
)
from amplint.infer.names.texts import spelled
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import memories, sparse, uses
from amplint.infer.torch_model.arrays import is_array
from amplint.infer.torch_model.results import constant_of, number_result
from amplint.infer.torch_model.tensors import cast, host_of_tensor_type

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op


def created(frame: Frame, op: Op, arguments: Arguments, node: ast.expr) -> Tensor:
    """A new tensor: of the ``dtype`` argument where there is one, else as the table says."""
    bound = arguments.bind(op.params)
    trait = Trait.ONES if op.name in ("torch.ones", "torch.ones_like") else None
    if op.tensors and op.result == "first":
        frame.session.recorder.torch_call(frame, op.name, node, bound)
        source = next((o for o in options_of(bound.get(op.params[0], UNKNOWN)) if isinstance(o, Tensor)), None)
        dtypes = source.dtypes if source is not None else frame.session.unknown
        made = with_dtype(frame, arguments, node, dtypes, "")
        made = replace(
            made,
            dim=source.dim if source else None,
            trait=trait,
            origin=made.origin or (source.origin if source else None),
            host=_device_given(made, arguments, source),
        )
        uses.filled(frame, node, op, made, bound, arguments)
        return made
    numbers = [bound[name] for name in op.numbers if name in bound and not is_none(bound[name])]
    default = constant_of(op.result) if isinstance(op.result, str) else None
    if default is None:
        default = number_result([_kind(value) for value in numbers])
    if default:
        dtypes = frame.session.constant(default)
    else:
        dtypes = _sizes(frame) if op.name == "torch.arange" and numbers else frame.session.unknown
    made = with_dtype(frame, arguments, node, dtypes, f"{op.name}() without dtype" if default else "")
    size = bound.get("size")
    scalar = (isinstance(size, Sequence) and size.items == ()) or op.name == "torch.scalar_tensor"
    counts = op.name == "torch.arange" and not _counts_little(bound)
    origin = replace(made.origin, empty=_has_no_elements(size, arguments)) if made.origin is not None else None
    made = replace(made, dim=0 if scalar else 1, trait=Trait.COUNT if counts else trait, origin=origin)
    uses.filled(frame, node, op, made, bound, arguments)
    return made


def _has_no_elements(size: Value | None, arguments: Arguments) -> bool:
    """Whether a size is written as 0."""
    if isinstance(size, Sequence):
        sizes = size.items or ()
    else:
        sizes = tuple(arguments.positional) if isinstance(size, (Const, Number)) else ()
    return any(isinstance(item, Const) and item.value == 0 for item in sizes)


def _counts_little(bound: dict[str, Value]) -> bool:
    """Whether ``arange`` stays below 256, which every floating dtype counts exactly; of a number that callers choose,
    the one that they get where they choose none."""
    ends = [bound[name] for name in ("start", "end") if name in bound and not is_none(bound[name])]
    values = [e.value if isinstance(e, Const) else e.usual if isinstance(e, Number) else None for e in ends]
    return all(isinstance(value, int) and abs(value) <= 256 for value in values)


def _kind(value: Value) -> str | None:
    """What kind of number a value is, for a constructor that takes numbers: of a tensor, what it holds."""
    if isinstance(value, (Const, Number)):
        return number_kind(value)
    if isinstance(value, Tensor) and not value.maybe and all(lane.known and not lane.assumed for lane in value.dtypes):
        mask = 0
        for lane in value.dtypes:
            mask |= lane.mask
        return "float" if not mask & ~FLOATS else "int" if not mask & ~INTEGERS else None
    return None


def _sizes(frame: Frame) -> Dtypes:
    """``arange`` over sizes: integers, unless an argument that is not followed was a float."""
    return tuple(Lane(BITS["int64"], None, False, True) for _ in range(frame.session.lanes))


def with_dtype(frame: Frame, arguments: Arguments, node: ast.expr, default: Dtypes, what: str) -> Tensor:
    """A new tensor of the ``dtype`` argument where there is one, else of the default, on the ``device`` likewise."""
    made = _of_dtype(frame, arguments, node, default, what)
    device = arguments.keywords.get("device")
    if device is None:
        return made if arguments.unknown else replace(made, host=True)
    if is_none(device):
        # what a variable leaves open, it may name elsewhere
        return replace(made, host=True if isinstance(_keyword(node, "device"), ast.Constant) else None)
    return replace(made, host=memories.named(frame, device))


def _device_given(made: Tensor, arguments: Arguments, source: Tensor | None) -> bool | None:
    """Where a tensor like another one lies, or one of its numbers: on the ``device``, else where that does."""
    named = "device" in arguments.keywords or arguments.unknown
    return made.host if named else source.host if source is not None else None


def _of_dtype(frame: Frame, arguments: Arguments, node: ast.expr, default: Dtypes, what: str) -> Tensor:
    dtype = arguments.keywords.get("dtype")
    if (dtype is None and not _may_hide_keywords(arguments, node)) or (dtype is not None and is_none(dtype)):
        origin = replace(frame.here(node, what, default), made=Made.DEFAULT) if what else None
        return Tensor(default, 1, origin)
    if isinstance(dtype, DTypeValue):
        expression = _keyword(node, "dtype")
        text = f"created with dtype {spelled(expression)}" if expression is not None else "created here"
        origin = frame.here(node, text, dtype.dtypes)
        made = Made.WRITTEN if dtype.written else None
        return Tensor(dtype.dtypes, 1, replace(origin, cast=dtype.written, made=made), explicit=dtype.written)
    choices = options_of(dtype) if dtype is not None else ()
    if any(is_none(option) or isinstance(option, Tensor) for option in choices) and what:
        asked = [o.dtypes if isinstance(o, DTypeValue) else frame.session.unknown for o in choices if not is_none(o)]
        dtypes = reduce(join, asked, default)
        return Tensor(dtypes, 1, frame.here(node, what.replace("without dtype", "where dtype is None"), dtypes))
    return Tensor(frame.session.unknown, 1)


def _may_hide_keywords(arguments: Arguments, node: ast.expr) -> bool:
    """Whether keywords that are not known are passed."""
    return arguments.unknown and (not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords))


def _keyword(node: ast.expr, name: str) -> ast.expr | None:
    if isinstance(node, ast.Call):
        return next((k.value for k in node.keywords if k.arg == name), None)
    return None


def from_data(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.tensor`` and its like: the dtype of what is handed over."""
    given = "obj" if name == "torch.asarray" else "data"
    data = arguments.get(0, given)
    of_array = not (isinstance(data, Tensor) and not data.maybe) and is_array(frame, arguments.node(0, given))
    if isinstance(data, Tensor):
        data = replace(data, dim=1, host=True) if of_array else data
        dtype = arguments.keywords.get("dtype")
        made = with_dtype(frame, arguments, node, data.dtypes, "")
        host = _device_given(made, arguments, data)
        if isinstance(dtype, DTypeValue):
            found = cast(frame, data, dtype.dtypes, node, f"cast by {name}()", dtype.written)
            return replace(found, dim=data.dim, host=host)
        return replace(made, dim=data.dim, origin=data.origin, host=host)
    kinds: list[str | None] = []
    if isinstance(data, Sequence):
        items = data.items if data.items is not None else (data.element,)
        while items and isinstance(items[0], Sequence):
            items = items[0].items if items[0].items is not None else (items[0].element,)
        kinds = [_kind(item) for item in items]
    elif isinstance(data, (Const, Number)):
        kinds = [number_kind(data)]
    default = number_result(kinds) if kinds else None
    dtypes = frame.session.constant(default) if default else frame.session.unknown
    made = with_dtype(frame, arguments, node, dtypes, f"{name}() of Python numbers, without dtype")
    if isinstance(data, (Const, Number)):
        uses.from_number(frame, node, name, made, data, arguments)
        return replace(made, dim=0, number=uses.held(made, data))
    if data is UNKNOWN and frame.in_module and not of_array:
        # a number has no dimensions, and lies anywhere
        return replace(made, dim=1, host=None)
    return replace(made, dim=1)


def from_numpy(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.from_numpy``: an array without dimensions would have been made a tensor as the number that it is."""
    return Tensor(frame.session.unknown, 1, host=True)


def legacy_tensor(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    dtypes = frame.session.constant(FLOAT32)
    origin = frame.here(node, "torch.Tensor() without dtype", dtypes)
    return Tensor(dtypes, 1, replace(origin, made=Made.DEFAULT), host=True)


def typed(frame: Frame, name: str, dtype: str, node: ast.expr) -> Tensor:
    """What ``torch.HalfTensor`` and its like make: the dtype is in the name. ``torch.FloatTensor`` is what
    ``torch.Tensor`` is an alias of by default, so it asks for no dtype either."""
    dtypes = frame.session.constant(BITS[dtype])
    asked = dtype != "float32"
    origin = replace(
        frame.here(node, f"{name}() is always {dtype}", dtypes),
        cast=asked,
        made=Made.WRITTEN if asked else Made.DEFAULT,
    )
    trait = Trait.SPARSE if name.startswith(sparse.LEGACY) else None
    return Tensor(dtypes, 1, origin, explicit=True, host=host_of_tensor_type(frame, name), trait=trait)


def sparse_tensor(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A sparse tensor of indices and values, with the dtype of the values where no other is asked for."""
    values = arguments.get(1 if name == "torch.sparse_coo_tensor" else 2, "values")
    own = values if isinstance(values, Tensor) else Tensor(frame.session.unknown)
    made = with_dtype(frame, arguments, node, own.dtypes, "")
    origin = made.origin or own.origin
    return replace(made, trait=sparse.MAKERS[name], origin=origin, host=_device_given(made, arguments, own))
