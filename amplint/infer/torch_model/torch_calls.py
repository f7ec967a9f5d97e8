"""Calling torch by name: constructors, parameters, autocast, queries; operations go to the op table."""

from __future__ import annotations

import ast
from functools import reduce
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.decorators import Decorated, custom_decorator
from amplint.infer.lattice.dtypes import BITS, FLOAT32, FLOATS, INTEGERS, Dtypes, Lane, join
from amplint.infer.lattice.joining import is_none, number_kind, options_of
from amplint.infer.lattice.kinds import KINDS, asked
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    External,
    FloatLimits,
    Layer,
    Made,
    Mapping,
    Number,
    Sequence,
    Tensor,
    TensorMethod,
    TorchName,
    Trait,
    Value,
)
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.names.texts import spelled
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.state.dispatch import call
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import (
    autocast,
    datasets,
    distributions,
    memories,
    modules,
    packed,
    placing,
    sparse,
    uses,
)
from amplint.infer.torch_model.operations import apply
from amplint.infer.torch_model.results import constant_of, number_result
from amplint.infer.torch_model.tensors import cast, dtype_of_tensor_type, host_of_tensor_type, is_dtype_name
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.infer.state.frame import Frame
    from amplint.infer.state.session import Session
    from amplint.infer.torch_model.torch_ops import Op

_TRANSPARENT_DECORATORS = frozenset(
    [
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
        "torch.jit.script",
        "torch.jit.ignore",
        "torch.jit.export",
        "torch.jit.unused",
        "torch.jit.script_if_tracing",
        "torch.compile",
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch.autograd.function.once_differentiable",
        "torch.compiler.allow_in_graph",
        "torch.fx.wrap",
        "torch.jit._overload_method",
        "torch.jit.interface",
    ]
)
_PRETRAINED = ("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
_AUTOCAST_QUERIES = frozenset(("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled"))
_DTYPE_QUERIES = frozenset(("torch.get_autocast_dtype", "torch.get_autocast_gpu_dtype", "torch.get_autocast_cpu_dtype"))
_NEVER = frozenset(
    ("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.onnx.is_in_onnx_export", "torch.compiler.is_exporting")
)
"""Questions whose answer is no in the runs judged here."""

_EITHER = frozenset(("torch.is_tensor", "torch.is_grad_enabled"))
_CUSTOM = tuple(f"torch.{place}.custom_{which}" for place in ("amp", "cuda.amp") for which in ("fwd", "bwd"))
_HAND_BACK = tuple(
    f"torch.nn.utils.{name}"
    for name in (
        [
            "weight_norm",
            "spectral_norm",
            "remove_weight_norm",
            "remove_spectral_norm",
            "parametrizations.weight_norm",
            "parametrizations.spectral_norm",
            "parametrizations.orthogonal",
        ]
    )
)
"""Functions that change a module and hand it back."""


def attribute(frame: Frame, value: TorchName, name: str) -> Value:
    """``torch.….name``."""
    return named(frame.session, TorchName(canonical(f"{value.name}.{name}")))


def named(session: Session, value: Value) -> Value:
    """What a name of torch stands for: a dtype or a number where it is one, else itself."""
    if isinstance(value, TorchName):
        module, _, name = value.name.rpartition(".")
        if module == "torch" and is_dtype_name(name):
            return session.dtype(name)
        if module == "torch" and name in ("pi", "e", "inf", "nan"):
            return Number("float")
    return value


def call_torch(frame: Frame, callee: TorchName, arguments: Arguments, node: ast.expr) -> Value:
    """Call a torch function or class."""
    name = callee.name
    special = _SPECIAL.get(name)
    if special is not None:
        return special(frame, name, arguments, node)
    op = find_op(name, frame.session.torch_version)
    if op is not None:
        return _created(frame, op, arguments, node) if op.creates else apply(frame, op, arguments, node)
    if name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper():
        layer = modules.build_layer(frame, name, arguments, node)
        _record(frame, name, node, Arguments([], layer.options))
        return layer
    if name in _PRETRAINED:
        return modules.pretrained(frame, name.rpartition(".")[0], arguments, node)
    dtype = dtype_of_tensor_type(name)
    if dtype is not None:
        return _typed(frame, name, dtype, node)
    if name.startswith("torch.Tensor.") and arguments.positional and isinstance(arguments.positional[0], Tensor):
        method = TensorMethod(arguments.positional[0], name.removeprefix("torch.Tensor."), arguments.nodes.get(0))
        return call(frame, method, _behind_first(arguments), node)
    if name.startswith(distributions.MODULE):
        _record(frame, name, node, arguments)
        return distributions.construct(frame, name, arguments, node)
    _record(frame, name, node, arguments)
    return datasets.construct(name, arguments) if name.startswith(datasets.MODULE) else UNKNOWN


# ---- no operations ----------------------------------------------------------------------------------------------


def _autocast_context(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    _record(frame, name, node, arguments)
    return autocast.context(frame, name, arguments, node)


def _autocast_query(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return autocast.query(frame, name, arguments)


def _autocast_dtype(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return autocast.dtype_query(frame, name, arguments)


def _transparent(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A decorator that leaves a function or module as it is, with or without arguments of its own."""
    first = arguments.positional[0] if arguments.positional else None
    if first is not None and callable_value(first):
        return first
    return External("functools.wraps.decorator")


def _custom(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return custom_decorator(name, arguments)


def _parameter(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return placing.parameter(frame, arguments.get(0, "data"), node)


def _buffer(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return placing.buffer(frame, arguments.get(0, "data"))


def _device(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return Device(autocast.device_type(arguments.positional[0] if arguments.positional else None))


def _limits(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    of = arguments.get(0, "type")
    if name == "torch.iinfo" or of is None:
        return Mapping({}, Number("float" if name == "torch.finfo" else "int"))
    return FloatLimits(of.dtypes if isinstance(of, DTypeValue) else frame.session.unknown)


def _no(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return Const(False)


def _either(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return Number("bool")


def _default_dtype(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return DTypeValue(frame.session.constant(FLOAT32))


def _checkpoint(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``checkpoint(function, …)``: calls the function."""
    if not arguments.positional:
        return UNKNOWN
    rest = _behind_first(arguments)
    keywords = {k: v for k, v in rest.keywords.items() if k not in _CHECKPOINT_OPTIONS}
    return call(frame, arguments.positional[0], Arguments(rest.positional, keywords, rest.nodes, rest.unknown), node)


def _gradients(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.autograd.grad``: a gradient for each input, of its dtype."""
    inputs = arguments.get(1, "inputs")
    if isinstance(inputs, Tensor):
        return Sequence((replace(inputs, leaf=False),))
    if isinstance(inputs, Sequence):
        return replace(inputs, mutable=False)
    return UNKNOWN


def _handed_back(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return arguments.get(0, "module") or UNKNOWN


def _behind_first(arguments: Arguments) -> Arguments:
    """The arguments without the first."""
    nodes: dict[int | str, ast.expr] = {
        (k - 1 if isinstance(k, int) else k): v for k, v in arguments.nodes.items() if k != 0
    }
    return Arguments(arguments.positional[1:], arguments.keywords, nodes, arguments.unknown, rest=arguments.rest)


_CHECKPOINT_OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "context_fn", "debug")


def callable_value(value: Value | None) -> bool:
    """Whether a decorator was handed what it decorates."""
    return isinstance(value, (Function, Class, Bound, Layer, Instance, Decorated))


def _record(frame: Frame, name: str, node: ast.expr, arguments: Arguments) -> None:
    bound: dict[str, Value] = {str(index): value for index, value in enumerate(arguments.positional)}
    frame.session.recorder.torch_call(frame, name, node, {**bound, **arguments.keywords})


# ---- new tensors ------------------------------------------------------------------------------------------------


def _created(frame: Frame, op: Op, arguments: Arguments, node: ast.expr) -> Tensor:
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


def _from_data(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.tensor`` and its like: the dtype of what is handed over."""
    data = arguments.get(0, "obj" if name == "torch.asarray" else "data")
    if isinstance(data, Tensor):
        dtype = arguments.keywords.get("dtype")
        if isinstance(dtype, DTypeValue):
            return replace(cast(frame, data, dtype.dtypes, node, f"cast by {name}()", dtype.written), dim=data.dim)
        made = with_dtype(frame, arguments, node, data.dtypes, "")
        return replace(made, dim=data.dim, origin=data.origin, host=_device_given(made, arguments, data))
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
    if data is UNKNOWN and frame.in_module:
        # a number has no dimensions, and lies anywhere
        return replace(made, dim=1, host=None)
    return replace(made, dim=1)


def _from_numpy(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.from_numpy``: an array without dimensions would have been made a tensor as the number that it is."""
    return Tensor(frame.session.unknown, 1, host=True)


def _legacy_tensor(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    dtypes = frame.session.constant(FLOAT32)
    origin = frame.here(node, "torch.Tensor() without dtype", dtypes)
    return Tensor(dtypes, 1, replace(origin, made=Made.DEFAULT), host=True)


def _typed(frame: Frame, name: str, dtype: str, node: ast.expr) -> Tensor:
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


def _sparse(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A sparse tensor of indices and values, with the dtype of the values where no other is asked for."""
    values = arguments.get(1 if name == "torch.sparse_coo_tensor" else 2, "values")
    own = values if isinstance(values, Tensor) else Tensor(frame.session.unknown)
    made = with_dtype(frame, arguments, node, own.dtypes, "")
    origin = made.origin or own.origin
    return replace(made, trait=sparse.MAKERS[name], origin=origin, host=_device_given(made, arguments, own))


def _sparse_product(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A product whose first matrix is meant to be sparse: by its name, or where a caller passes the matrix to what is
    another name for ``mm`` too. The second may be as well, where nothing is known of it or a caller passes it."""
    op = find_op(sparse.PRODUCTS[name], frame.session.torch_version)
    assert op is not None
    place, positional = len(op.tensors) - 2, list(arguments.positional)
    if len(positional) <= place + 1:
        return apply(frame, op, arguments, node)
    by_name = name.startswith(sparse.MODULE)
    given = positional[place : place + 2]
    first, second = (value if isinstance(value, Tensor) else Tensor(frame.session.unknown, 1) for value in given)
    if first.trait is None and (by_name or first.maybe) and not sparse.may_be_compressed(frame.namespace.source):
        first = replace(first, trait=Trait.SPARSE, unsure=True)
    unknown = second.trait is None and by_name and (second is not given[1] or _is_passed(second))
    both = second.trait is Trait.SPARSE or unknown
    if both or first.trait is not Trait.SPARSE:
        first, second = replace(first, trait=None), replace(second, trait=None)
    positional[place : place + 2] = first, second
    result = apply(frame, op, replace(arguments, positional=positional), node)
    if not isinstance(result, Tensor) or not both:
        return result
    return replace(result, trait=Trait.SPARSE, maybe=result.maybe or unknown, unsure=result.unsure or unknown)


def _is_passed(value: Tensor) -> bool:
    """Whether a tensor is what a caller passes, as it is."""
    return value.maybe or (value.origin is not None and isinstance(value.origin.node, ast.arg))


def _variable(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.autograd.Variable``: since torch 0.4 the tensor that it is given."""
    return arguments.get(0, "data") or UNKNOWN


def _promoted_dtype(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    dtypes = [v.dtypes for v in arguments.positional if isinstance(v, (DTypeValue, Tensor))]
    if len(dtypes) == 2:
        return DTypeValue(frame.session.promote(dtypes[0], 1, dtypes[1], 1))
    return UNKNOWN


def _asked_kind(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    asks = arguments.bind(("input",)).get("input", UNKNOWN)
    return asked(asks.dtypes if isinstance(asks, Tensor) else frame.session.unknown, name.removeprefix("torch."))


def _padded(frame: Frame, _name: str, arguments: Arguments, _node: ast.expr) -> Value:
    return packed.padded(frame, arguments)


_SPECIAL: dict[str, Callable[[Frame, str, Arguments, ast.expr], Value]] = {
    **dict.fromkeys((autocast.MODERN, *autocast.LEGACY), _autocast_context),
    **dict.fromkeys(_AUTOCAST_QUERIES, _autocast_query),
    **dict.fromkeys(_DTYPE_QUERIES, _autocast_dtype),
    **dict.fromkeys(_TRANSPARENT_DECORATORS, _transparent),
    **dict.fromkeys(_CUSTOM, _custom),
    **dict.fromkeys(_NEVER, _no),
    **dict.fromkeys(_EITHER, _either),
    **dict.fromkeys(_HAND_BACK, _handed_back),
    **dict.fromkeys(("torch.tensor", "torch.as_tensor", "torch.asarray"), _from_data),
    **dict.fromkeys(("torch.nn.Buffer", "torch.nn.parameter.Buffer"), _buffer),
    "torch.Tensor": _legacy_tensor,
    **dict.fromkeys(("torch.autograd.Variable", "torch.autograd.variable.Variable"), _variable),
    "torch.from_numpy": _from_numpy,
    **dict.fromkeys(("torch.finfo", "torch.iinfo"), _limits),
    **dict.fromkeys(("torch.promote_types", "torch.result_type"), _promoted_dtype),
    **dict.fromkeys((f"torch.{name}" for name in KINDS), _asked_kind),
    "torch.nn.Parameter": _parameter,
    "torch.device": _device,
    "torch.get_default_dtype": _default_dtype,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.autograd.grad": _gradients,
    "torch.nn.utils.rnn.pad_packed_sequence": _padded,
    **dict.fromkeys(sparse.MAKERS, _sparse),
    **dict.fromkeys(sparse.PRODUCTS, _sparse_product),
}
