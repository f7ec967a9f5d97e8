"""Calling torch by name: constructors, parameters, autocast, queries; operations go to the op table."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.decorators import Decorated, custom_decorator
from amplint.infer.lattice.dtypes import FLOAT32
from amplint.infer.lattice.kinds import KINDS, asked
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    External,
    FloatLimits,
    Layer,
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
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.state.dispatch import call
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import (
    autocast,
    datasets,
    distributions,
    modules,
    packed,
    placing,
    sparse,
    versions,
)
from amplint.infer.torch_model.creation import created, from_data, from_numpy, legacy_tensor, sparse_tensor, typed
from amplint.infer.torch_model.operations import apply
from amplint.infer.torch_model.tensors import dtype_of_tensor_type, is_dtype_name
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.infer.state.frame import Frame
    from amplint.infer.state.session import Session

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
_AVAILABLE = ("torch.cuda.is_available", "torch.xpu.is_available")
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
        if value.name in versions.OF_TORCH:
            return versions.of_torch(session)
    return value


def call_torch(frame: Frame, callee: TorchName, arguments: Arguments, node: ast.expr) -> Value:
    """Call a torch function or class."""
    name = callee.name
    special = _SPECIAL.get(name)
    if special is not None:
        return special(frame, name, arguments, node)
    op = find_op(name, frame.session.torch_version)
    if op is not None:
        return created(frame, op, arguments, node) if op.creates else apply(frame, op, arguments, node)
    if name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper():
        layer = modules.build_layer(frame, name, arguments, node)
        _record(frame, name, node, Arguments([], layer.options))
        return layer
    if name in _PRETRAINED:
        return modules.pretrained(frame, name.rpartition(".")[0], arguments, node)
    dtype = dtype_of_tensor_type(name)
    if dtype is not None:
        return typed(frame, name, dtype, node)
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


def _available(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """Whether the machine has a device: that which is judged, and nobody knows of others beside the host."""
    return Const(True) if name == f"torch.{frame.session.device}.is_available" else Number("bool")


def _bfloat16_supported(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """Since 2.4 every CUDA device counts that holds bfloat16 at all, unless the code asks not to count emulation."""
    counts = not (arguments.positional or arguments.keywords) and frame.session.oldest_torch >= (2, 4)
    return Const(True) if counts and frame.session.device == "cuda" else Number("bool")


def _annotated(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    return arguments.get(1, "the_value") or UNKNOWN


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


# ---- other calls ----------------------------------------------------------------------------------------------------


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
        first = replace(first, trait=Trait.SPARSE, unsure=True, maybe=False)
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


def _normal(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """``torch.normal(0, 1, size)`` makes a tensor as ``torch.randn`` does; without a size its operands decide."""
    size = arguments.get(2, "size")
    op = find_op(name if size is None else "torch.randn", frame.session.torch_version)
    if op is None or size is None:
        return UNKNOWN if op is None else apply(frame, op, arguments, node)
    where = {key: value for key, value in arguments.keywords.items() if key in ("dtype", "device", "out")}
    return created(frame, op, Arguments([size], where), node)


_SPECIAL: dict[str, Callable[[Frame, str, Arguments, ast.expr], Value]] = {
    **dict.fromkeys((autocast.MODERN, *autocast.LEGACY), _autocast_context),
    **dict.fromkeys(_AUTOCAST_QUERIES, _autocast_query),
    **dict.fromkeys(_DTYPE_QUERIES, _autocast_dtype),
    **dict.fromkeys(_TRANSPARENT_DECORATORS, _transparent),
    **dict.fromkeys(_CUSTOM, _custom),
    **dict.fromkeys(_NEVER, _no),
    **dict.fromkeys(_EITHER, _either),
    **dict.fromkeys(_AVAILABLE, _available),
    "torch.cuda.is_bf16_supported": _bfloat16_supported,
    "torch.jit.annotate": _annotated,
    "torch.normal": _normal,
    **dict.fromkeys(_HAND_BACK, _handed_back),
    **dict.fromkeys(("torch.tensor", "torch.as_tensor", "torch.asarray"), from_data),
    **dict.fromkeys(("torch.nn.Buffer", "torch.nn.parameter.Buffer"), _buffer),
    "torch.Tensor": legacy_tensor,
    **dict.fromkeys(("torch.autograd.Variable", "torch.autograd.variable.Variable"), _variable),
    "torch.from_numpy": from_numpy,
    **dict.fromkeys(("torch.finfo", "torch.iinfo"), _limits),
    **dict.fromkeys(("torch.promote_types", "torch.result_type"), _promoted_dtype),
    **dict.fromkeys((f"torch.{name}" for name in KINDS), _asked_kind),
    "torch.nn.Parameter": _parameter,
    "torch.device": _device,
    "torch.get_default_dtype": _default_dtype,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.autograd.grad": _gradients,
    "torch.nn.utils.rnn.pad_packed_sequence": _padded,
    **dict.fromkeys(sparse.MAKERS, sparse_tensor),
    **dict.fromkeys(sparse.PRODUCTS, _sparse_product),
}
