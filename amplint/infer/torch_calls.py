"""Calling torch by name: constructors, parameters, autocast, queries; operations go to the op table."""

from __future__ import annotations

import ast
from dataclasses import replace

from amplint.infer import autocast, modules
from amplint.infer.arguments import Arguments
from amplint.infer.decorators import Decorated, custom_decorator
from amplint.infer.dtypes import BITS, FLOAT32, Dtypes, Lane
from amplint.infer.frame import Frame, call, number_kind, options_of
from amplint.infer.namespace import canonical
from amplint.infer.operations import apply
from amplint.infer.tensors import cast, dtype_of_tensor_type, is_dtype_name
from amplint.infer.torch_ops import find_op
from amplint.infer.values import (
    UNKNOWN,
    Bound,
    Class,
    Const,
    Device,
    DTypeValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Number,
    Sequence,
    Tensor,
    TensorMethod,
    TorchName,
    Value,
)

_FLOAT_CONSTRUCTORS = frozenset(
    f"torch.{name}"
    for name in (
        [
            "zeros",
            "ones",
            "empty",
            "rand",
            "randn",
            "linspace",
            "logspace",
            "eye",
            "hann_window",
            "hamming_window",
            "blackman_window",
            "bartlett_window",
            "kaiser_window",
            "empty_strided",
        ]
    )
)
_LIKE = frozenset(f"torch.{n}_like" for n in ["zeros", "ones", "empty", "rand", "randn", "full", "randint"])
_INT_CONSTRUCTORS = frozenset(("torch.randint", "torch.randperm", "torch.tril_indices", "torch.triu_indices"))
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
_AUTOCAST_QUERIES = frozenset(("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled"))
_DTYPE_QUERIES = frozenset(("torch.get_autocast_dtype", "torch.get_autocast_gpu_dtype", "torch.get_autocast_cpu_dtype"))
_NEVER = frozenset(
    ("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.onnx.is_in_onnx_export", "torch.compiler.is_exporting")
)
"""Questions whose answer is no in the runs judged here."""

_CUSTOM = {
    "torch.amp.custom_fwd": "forward",
    "torch.cuda.amp.custom_fwd": "forward",
    "torch.amp.custom_bwd": "backward",
    "torch.cuda.amp.custom_bwd": "backward",
}


def attribute(frame: Frame, value: TorchName, name: str) -> Value:
    """``torch.….name``."""
    if value.name == "torch" and is_dtype_name(name):
        return frame.session.dtype(name)
    return TorchName(canonical(f"{value.name}.{name}"))


def call_torch(frame: Frame, callee: TorchName, arguments: Arguments, node: ast.expr) -> Value:
    """Call a torch function or class."""
    name = callee.name
    first = arguments.positional[0] if arguments.positional else None
    if name in autocast.LEGACY or name == autocast.MODERN:
        _record(frame, name, node, arguments)
        return autocast.context(frame, name, arguments, node)
    if name in _AUTOCAST_QUERIES:
        return autocast.query(frame, name, arguments)
    if name in _DTYPE_QUERIES:
        return autocast.dtype_query(frame, name, arguments)
    if name in _TRANSPARENT_DECORATORS:
        if isinstance(first, (Function, Class)) or callable_value(first):
            return first or UNKNOWN
        return External("functools.wraps.decorator")
    if name in _CUSTOM:
        return custom_decorator(name, arguments)
    if name == "torch.nn.Parameter":
        data = first or arguments.keywords.get("data")
        return modules.parameter(frame, data, node)
    if name in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
        return modules.buffer(frame, first or arguments.keywords.get("data"))
    if name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper():
        layer = modules.build_layer(frame, name, arguments, node)
        _record(frame, name, node, Arguments([], layer.options))
        return layer
    constructed = _construct(frame, name, arguments, node)
    if constructed is not None:
        return constructed
    if name == "torch.device":
        return Device(autocast.device_type(first))
    if name in ("torch.finfo", "torch.iinfo"):
        return Mapping({}, Number("float"))
    if name in _NEVER:
        return Const(False)
    if name == "torch.get_default_dtype":
        return DTypeValue(frame.session.constant(FLOAT32))
    if name in ("torch.promote_types", "torch.result_type"):
        return _promoted_dtype(frame, arguments)
    if name in ("torch.is_floating_point", "torch.is_tensor", "torch.is_grad_enabled", "torch.equal", "torch.allclose"):
        return Number("bool")
    if name == "torch.utils.checkpoint.checkpoint" and first is not None:
        keywords = {k: v for k, v in arguments.keywords.items() if k not in _CHECKPOINT_OPTIONS}
        nodes: dict[int | str, ast.expr] = {
            (k - 1 if isinstance(k, int) else k): v for k, v in arguments.nodes.items() if k != 0
        }
        return call(frame, first, Arguments(arguments.positional[1:], keywords, nodes, arguments.unknown), node)
    dtype = dtype_of_tensor_type(name)
    if dtype is not None:
        return Tensor(frame.session.constant(BITS[dtype]), 1, explicit=True)
    if name in ("torch.Tensor", "torch.FloatTensor"):
        dtypes = frame.session.constant(FLOAT32)
        return Tensor(dtypes, 1, frame.here(node, "torch.Tensor() is always float32", dtypes))
    return _operation(frame, name, arguments, node)


_CHECKPOINT_OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "context_fn", "debug")


def callable_value(value: Value | None) -> bool:
    """Whether a decorator was handed what it decorates."""
    return isinstance(value, (Function, Class, Bound, Layer, Instance, Decorated))


def _operation(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    op = find_op(name)
    if op is not None:
        return apply(frame, op, arguments, node)
    if name.startswith("torch.Tensor.") and arguments.positional and isinstance(arguments.positional[0], Tensor):
        method = TensorMethod(arguments.positional[0], name.removeprefix("torch.Tensor."), arguments.nodes.get(0))
        nodes: dict[int | str, ast.expr] = {
            (k - 1 if isinstance(k, int) else k): v for k, v in arguments.nodes.items() if k != 0
        }
        return call(frame, method, Arguments(arguments.positional[1:], arguments.keywords, nodes), node)
    _record(frame, name, node, arguments)
    return UNKNOWN


def _record(frame: Frame, name: str, node: ast.expr, arguments: Arguments) -> None:
    bound: dict[str, Value] = {str(index): value for index, value in enumerate(arguments.positional)}
    frame.session.recorder.torch_call(frame, name, node, {**bound, **arguments.keywords})


def _construct(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value | None:
    """A constructor's tensor; None where ``name`` constructs nothing."""
    first = arguments.positional[0] if arguments.positional else None
    if name in _LIKE:
        source = next(
            (o for o in options_of(first or arguments.keywords.get("input", UNKNOWN)) if isinstance(o, Tensor)), None
        )
        dtypes = source.dtypes if source is not None else frame.session.unknown
        made = _with_dtype(frame, arguments, node, dtypes, "")
        return replace(
            made, dim=source.dim if source else None, origin=made.origin or (source.origin if source else None)
        )
    if name in _FLOAT_CONSTRUCTORS:
        return _default(frame, name, arguments, node, FLOAT32)
    if name in _INT_CONSTRUCTORS:
        return _default(frame, name, arguments, node, BITS["int64"])
    if name == "torch.arange":
        keywords = ("start", "end", "step")
        numbers = [*arguments.positional, *(arguments.keywords[k] for k in keywords if k in arguments.keywords)]
        kinds = {number_kind(v) if isinstance(v, (Const, Number)) else "unknown" for v in numbers}
        mask = FLOAT32 if "float" in kinds else BITS["int64"]
        if "unknown" in kinds and "float" not in kinds:
            return _with_dtype(frame, arguments, node, _default_or_unknown(frame, kinds, numbers), "")
        return _default(frame, name, arguments, node, mask)
    if name == "torch.full":
        fill = arguments.get(1, "fill_value")
        kind = number_kind(fill) if isinstance(fill, (Const, Number)) else None
        masks = {"float": FLOAT32, "int": BITS["int64"], "bool": BITS["bool"]}
        if kind is None:
            return _with_dtype(frame, arguments, node, frame.session.unknown, "")
        return _default(frame, name, arguments, node, masks[kind])
    if name in ("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.scalar_tensor"):
        return _from_data(frame, name, first, arguments, node)
    if name == "torch.complex":
        return None
    return None


def _default_or_unknown(frame: Frame, kinds: set[str | None], numbers: list[Value]) -> Dtypes:
    """``arange`` over sizes: integers, unless an argument that is not followed was a float."""
    tensors = [v for v in numbers if isinstance(v, Tensor) and not v.maybe]
    if tensors and all(isinstance(v, (Tensor, Const, Number)) for v in numbers):
        return tensors[0].dtypes
    return tuple(Lane(BITS["int64"], None, False, True) for _ in range(frame.session.lanes))


def _default(frame: Frame, name: str, arguments: Arguments, node: ast.expr, mask: int) -> Tensor:
    short = name.removeprefix("torch.")
    what = f"torch.{short}() without dtype"
    made = _with_dtype(frame, arguments, node, frame.session.constant(mask), what)
    size = arguments.positional[0] if arguments.positional else None
    scalar = isinstance(size, Sequence) and size.items == ()
    return replace(made, dim=0 if scalar else 1)


def _with_dtype(frame: Frame, arguments: Arguments, node: ast.expr, default: Dtypes, what: str) -> Tensor:
    """A new tensor: of the ``dtype`` argument where there is one, else of the default."""
    dtype = arguments.keywords.get("dtype")
    if (dtype is None and not arguments.unknown) or (isinstance(dtype, Const) and dtype.value is None):
        origin = frame.here(node, what, default) if what else None
        return Tensor(default, 1, origin)
    if isinstance(dtype, DTypeValue):
        spelled = _keyword(node, "dtype")
        text = f"created with dtype {ast.unparse(spelled)}" if spelled is not None else "created here"
        origin = frame.here(node, text, dtype.dtypes)
        return Tensor(dtype.dtypes, 1, replace(origin, cast=dtype.written), explicit=dtype.written)
    return Tensor(frame.session.unknown, 1)


def _keyword(node: ast.expr, name: str) -> ast.expr | None:
    if isinstance(node, ast.Call):
        return next((k.value for k in node.keywords if k.arg == name), None)
    return None


def _from_data(frame: Frame, name: str, data: Value | None, arguments: Arguments, node: ast.expr) -> Value:
    kinds: set[str | None] = set()
    dim: int | None = 1
    default = frame.session.unknown
    if isinstance(data, Tensor):
        made = _with_dtype(frame, arguments, node, data.dtypes, "")
        if isinstance(arguments.keywords.get("dtype"), DTypeValue):
            dtype = arguments.keywords["dtype"]
            assert isinstance(dtype, DTypeValue)
            return replace(cast(frame, data, dtype.dtypes, node, f"cast by {name}()", dtype.written), dim=data.dim)
        return replace(made, dim=data.dim, origin=data.origin)
    if isinstance(data, (Const, Number)):
        kinds, dim = {number_kind(data)}, 0
    elif isinstance(data, Sequence):
        items = data.items if data.items is not None else (data.element,)
        while items and isinstance(items[0], Sequence):
            items = items[0].items if items[0].items is not None else (items[0].element,)
        kinds = {number_kind(i) if isinstance(i, (Const, Number)) else None for i in items}
    if kinds and None not in kinds:
        kind = "float" if "float" in kinds else "int" if "int" in kinds else "bool"
        mask = {"float": FLOAT32, "int": BITS["int64"], "bool": BITS["bool"]}[kind]
        default = frame.session.constant(mask)
    made = _with_dtype(frame, arguments, node, default, f"{name}() of Python numbers, without dtype")
    return replace(made, dim=dim)


def _promoted_dtype(frame: Frame, arguments: Arguments) -> Value:
    dtypes = [v.dtypes for v in arguments.positional if isinstance(v, (DTypeValue, Tensor))]
    if len(dtypes) == 2:
        return DTypeValue(frame.session.promote(dtypes[0], 1, dtypes[1], 1))
    return UNKNOWN
