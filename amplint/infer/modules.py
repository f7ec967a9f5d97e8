"""``torch.nn``: parameters, buffers, layers and what calling a layer does.

A layer is the functional operation of its name applied to its parameters, so its cast policy and its strictness come
from the op table; here is only which parameters a layer has.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer.arguments import Arguments
from amplint.infer.dtypes import BITS, FLOAT32, UNKNOWN_LANE, Lane
from amplint.infer.frame import Frame, call, element_of, grown, options_of, set_attribute, unite
from amplint.infer.operations import apply
from amplint.infer.torch_ops import find_op
from amplint.infer.values import (
    NONE,
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Instance,
    Layer,
    Mapping,
    Origin,
    Sequence,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    import ast

_WEIGHT_BIAS = ("weight", "bias")
_RUNNING = ("running_mean", "running_var")

_LAYERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "Linear": ("linear", _WEIGHT_BIAS, ()),
    "LazyLinear": ("linear", _WEIGHT_BIAS, ()),
    "Bilinear": ("bilinear", _WEIGHT_BIAS, ()),
    "Embedding": ("embedding", ("weight",), ()),
    "EmbeddingBag": ("embedding_bag", ("weight",), ()),
    "LayerNorm": ("layer_norm", _WEIGHT_BIAS, ()),
    "RMSNorm": ("rms_norm", ("weight",), ()),
    "GroupNorm": ("group_norm", _WEIGHT_BIAS, ()),
    "PReLU": ("prelu", ("weight",), ()),
    **{f"Conv{n}d": (f"conv{n}d", _WEIGHT_BIAS, ()) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": (f"conv_transpose{n}d", _WEIGHT_BIAS, ()) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": ("batch_norm", _WEIGHT_BIAS, _RUNNING) for n in (1, 2, 3)},
    "SyncBatchNorm": ("batch_norm", _WEIGHT_BIAS, _RUNNING),
    **{f"InstanceNorm{n}d": ("instance_norm", (), ()) for n in (1, 2, 3)},
}
"""Layers with parameters: functional operation, parameters, buffers."""

_FUNCTIONAL_NAMES = {
    "Softmax2d": "softmax",
    "Upsample": "interpolate",
    "UpsamplingBilinear2d": "interpolate",
    "UpsamplingNearest2d": "interpolate",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "NLLLoss": "nll_loss",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "KLDivLoss": "kl_div",
    "CTCLoss": "ctc_loss",
    "CrossEntropyLoss": "cross_entropy",
    "HuberLoss": "huber_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "GELU": "gelu",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "SiLU": "silu",
    "ELU": "elu",
    "CELU": "celu",
    "SELU": "selu",
    "GLU": "glu",
    "RReLU": "rrelu",
    "LeakyReLU": "leaky_relu",
    "LogSoftmax": "log_softmax",
    "AdaptiveAvgPool1d": "adaptive_avg_pool1d",
    "AdaptiveAvgPool2d": "adaptive_avg_pool2d",
    "AdaptiveAvgPool3d": "adaptive_avg_pool3d",
}
_PASS_THROUGH = re.compile(
    r"torch\.nn\.(Identity|Dropout\w*|AlphaDropout|FeatureAlphaDropout|Flatten|Unflatten|\w*Pad[123]d|PixelShuffle"
    r"|PixelUnshuffle|ChannelShuffle|Fold|Unfold|ZeroPad\w*)$"
)
_TRANSFORMER_PARAMS = {
    "TransformerEncoderLayer": (
        "d_model",
        "nhead",
        "dim_feedforward",
        "dropout",
        "activation",
        "layer_norm_eps",
        "batch_first",
        "norm_first",
        "bias",
        "device",
        "dtype",
    ),
    "TransformerEncoder": ("encoder_layer", "num_layers", "norm", "enable_nested_tensor", "mask_check"),
}
"""Constructor parameters in order, for the rules that ask how an encoder was built."""

_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)


def parameter(frame: Frame, data: Value | None, node: ast.expr) -> Value:
    """``nn.Parameter(data)``: a leaf that follows the module's dtype."""
    tensor = next((o for o in options_of(data) if isinstance(o, Tensor)), None) if data is not None else None
    if tensor is None:
        tensor = Tensor(frame.session.unknown, 1)
    if isinstance(data, Const) and data.value is None:
        return UNKNOWN
    if frame.constructing is None:
        return replace(tensor, leaf=True)
    placed = place(frame, tensor, "parameters")
    return replace(placed, origin=_placed_origin(frame, tensor, placed, node, "parameter"))


def place(frame: Frame, tensor: Tensor, role: str) -> Tensor:
    """A parameter or buffer under each scenario.

    Outside a module's own code, a script that builds a model and feeds it decides the dtypes itself: nothing is
    converted behind its back.
    """
    return frame.session.placed(tensor, role) if frame.in_module else tensor


def buffer(frame: Frame, data: Value | None, node: ast.expr | None = None) -> Value:
    """What ``register_buffer`` stores: follows the module's dtype if floating."""
    if data is None:
        return UNKNOWN
    values: list[Value] = []
    for option in options_of(data):
        if isinstance(option, Tensor):
            placed = place(frame, option, "buffers")
            if node is not None:
                placed = replace(placed, origin=_placed_origin(frame, option, placed, node, "buffer"))
            values.append(placed)
        else:
            values.append(option)
    return unite(*values)


def _placed_origin(frame: Frame, made: Tensor, placed: Tensor, node: ast.expr, role: str) -> Origin:
    """The constructor where the dtype is still that of it, else the place that makes it the module's own."""
    return replace(frame.here(node, f"{role} of the module", placed.dtypes, made.origin), placed=True)


def build_layer(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Layer:
    """Construct a ``torch.nn`` layer."""
    short = name.removeprefix("torch.nn.")
    span = frame.namespace.source.span(node)
    if name in CONTAINERS:
        return Layer(name, {}, _children(frame, short, arguments), span)
    if short in _LAYERS:
        _, parameters, buffers = _LAYERS[short]
        tensors: dict[str, Value] = {}
        for tensor_name in (*parameters, *buffers):
            role = "buffers" if tensor_name in buffers else "parameters"
            tensors[tensor_name] = _layer_tensor(frame, arguments, node, role, short)
        bias = arguments.keywords.get("bias")
        if isinstance(bias, Const) and bias.value is False:
            tensors.pop("bias", None)
        affine = arguments.keywords.get("elementwise_affine", arguments.keywords.get("affine"))
        if isinstance(affine, Const) and affine.value is False:
            tensors = {k: v for k, v in tensors.items() if k in buffers}
        return Layer(name, tensors, None, span)
    if name in (*_RECURRENT, "torch.nn.MultiheadAttention") or short.startswith("Transformer"):
        weight = _layer_tensor(frame, arguments, node, "parameters", short)
        return Layer(name, {"weight": weight}, None, span, arguments.bind(_TRANSFORMER_PARAMS.get(short, ())))
    if short == "BCELoss" or short.endswith("Loss"):
        weights = {k: v for k, v in arguments.keywords.items() if k in ("weight", "pos_weight")}
        return Layer(name, weights, None, span)
    return Layer(name, {}, None, span)


def _layer_tensor(frame: Frame, arguments: Arguments, node: ast.expr, role: str, short: str) -> Tensor:
    dtype = arguments.keywords.get("dtype")
    explicit = isinstance(dtype, DTypeValue) and dtype.written
    made = dtype.dtypes if isinstance(dtype, DTypeValue) else frame.session.constant(FLOAT32)
    placed = place(frame, Tensor(made, 1, explicit=explicit), role)
    what = f"parameters of nn.{short}" + (" made with this dtype" if explicit else "")
    return replace(placed, leaf=True, origin=frame.here(node, what, placed.dtypes))


def _children(frame: Frame, short: str, arguments: Arguments) -> Value:
    first = arguments.positional[0] if arguments.positional else None
    if short == "Sequential":
        if isinstance(first, Mapping):
            values = [*first.items.values(), *([first.other] if first.other else [])]
            return Sequence(None, unite(*values) if values else UNKNOWN)
        if arguments.unknown:
            return Sequence(None, UNKNOWN)
        return Sequence(tuple(arguments.positional))
    if short in ("ModuleList", "ParameterList"):
        if first is None:
            return Sequence((), mutable=True)
        return (
            Sequence(first.items, first.element, True) if isinstance(first, Sequence) else Sequence(None, UNKNOWN, True)
        )
    if first is None:
        return Mapping({})
    return Mapping(dict(first.items), first.other) if isinstance(first, Mapping) else Mapping({}, UNKNOWN)


def functional_of(name: str) -> str | None:
    """The functional operation that a layer class applies, by qualified name."""
    short = name.removeprefix("torch.nn.")
    if short in _LAYERS:
        return "torch.nn.functional." + _LAYERS[short][0]
    if short in _FUNCTIONAL_NAMES:
        return "torch.nn.functional." + _FUNCTIONAL_NAMES[short]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", short).lower()
    candidate = f"torch.nn.functional.{snake}"
    return candidate if find_op(candidate) is not None else None


def call_layer(frame: Frame, layer: Layer, arguments: Arguments, node: ast.expr) -> Value:
    """``layer(x, …)``."""
    first = arguments.positional[0] if arguments.positional else next(iter(arguments.keywords.values()), None)
    if first is None:
        return UNKNOWN
    if layer.name == "torch.nn.Sequential":
        return _sequential(frame, layer, arguments, node)
    if _PASS_THROUGH.match(layer.name):
        return first
    if layer.name in _RECURRENT:
        return _recurrent(frame, layer, first, arguments, node)
    if layer.name == "torch.nn.MultiheadAttention":
        return _attention(frame, layer, arguments, node)
    functional = functional_of(layer.name)
    op = find_op(functional) if functional is not None else None
    if op is None or functional is None:
        frame.session.recorder.torch_call(frame, layer.name, node, {})
        return UNKNOWN
    bound = Arguments(list(arguments.positional), dict(arguments.keywords), dict(arguments.nodes), arguments.unknown)
    if functional.endswith(("embedding", "embedding_bag")):
        weight = layer.tensors.get("weight", UNKNOWN)
        bound = Arguments([first, weight], {}, {0: arguments.nodes[0]} if 0 in arguments.nodes else {})
    else:
        for tensor_name, value in layer.tensors.items():
            if tensor_name in op.params or tensor_name in op.tensors:
                bound.keywords[tensor_name] = value
                if arguments.callee is not None:
                    bound.nodes[tensor_name] = arguments.callee
    return apply(frame, op, bound, node)


def _sequential(frame: Frame, layer: Layer, arguments: Arguments, node: ast.expr) -> Value:
    children = layer.children
    if not isinstance(children, Sequence):
        return UNKNOWN
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    nodes = dict(arguments.nodes)
    if children.items is None:
        element = element_of(frame.session, children)
        return unite(*(call(frame, option, Arguments([value]), node) for option in options_of(element)))
    for child in children.items:
        value = call(frame, child, Arguments([value], {}, nodes), node)
        nodes = {}
    return value


def _recurrent(frame: Frame, layer: Layer, first: Value, arguments: Arguments, node: ast.expr) -> Value:
    """RNNs: strict without autocast; under CUDA's the cuDNN wrapper gives the low dtype (see the generator)."""
    weight = layer.tensors.get("weight", UNKNOWN)
    op = find_op("torch.nn.functional.linear")
    if op is None or not isinstance(weight, Tensor):
        return UNKNOWN
    nodes: dict[int | str, ast.expr] = {0: arguments.nodes[0]} if 0 in arguments.nodes else {}
    if arguments.callee is not None:
        nodes["weight"] = arguments.callee
    if frame.session.device != "cuda" and any(a.low for a in frame.autocast):
        return UNKNOWN
    output = apply(frame, op, Arguments([first], {"weight": weight}, nodes), node)
    return Sequence((output, Sequence((output, output)) if layer.name.endswith("LSTM") else output))


def _attention(frame: Frame, layer: Layer, arguments: Arguments, node: ast.expr) -> Value:
    """``nn.MultiheadAttention``: query, key and value meet its projections."""
    weight = layer.tensors.get("weight", UNKNOWN)
    op = find_op("torch.nn.functional.linear")
    if op is None or not isinstance(weight, Tensor):
        return UNKNOWN
    result: Value = UNKNOWN
    for index, name in enumerate(("query", "key", "value")):
        operand = arguments.get(index, name)
        if operand is None:
            continue
        nodes: dict[int | str, ast.expr] = {}
        expression = arguments.node(index, name)
        if expression is not None:
            nodes[0] = expression
        if arguments.callee is not None:
            nodes["weight"] = arguments.callee
        output = apply(frame, op, Arguments([operand], {"weight": weight}, nodes), node)
        result = output if index == 0 else result
    return Sequence((result, UNKNOWN))


def converted(frame: Frame, layer: Layer, dtype: DTypeValue | None) -> Layer:
    """A layer after ``.half()``, ``.to(dtype)`` and the like, where nothing later converts the whole model."""
    if dtype is None:
        return layer
    tensors: dict[str, Value] = {}
    for name, value in layer.tensors.items():
        if isinstance(value, Tensor):
            lanes = []
            for scenario, lane, wanted in zip(frame.session.scenarios, value.dtypes, dtype.dtypes, strict=True):
                follows = frame.in_module and scenario.parameters != "float32" and not scenario.keeps_explicit
                lanes.append(lane if follows else Lane(wanted.mask) if wanted.known else UNKNOWN_LANE)
            value = replace(value, dtypes=tuple(lanes), explicit=True)
        tensors[name] = value
    return replace(layer, tensors=tensors)


_MODULE_SAME = frozenset(
    [
        "eval",
        "train",
        "cuda",
        "cpu",
        "requires_grad_",
        "apply",
        "compile",
        "to_empty",
        "xpu",
        "share_memory",
        "zero_grad",
    ]
)
_MODULE_CASTS = {"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
MODULE_METHODS = (
    _MODULE_SAME
    | frozenset(_MODULE_CASTS)
    | frozenset(
        [
            "to",
            "type",
            "register_buffer",
            "register_parameter",
            "add_module",
            "register_module",
            "parameters",
            "named_parameters",
            "buffers",
            "modules",
            "children",
            "named_modules",
            "named_children",
            "append",
            "extend",
            "insert",
            "items",
            "values",
            "keys",
            "state_dict",
            "load_state_dict",
            "register_forward_hook",
            "register_forward_pre_hook",
        ]
    )
)


def call_module_method(frame: Frame, receiver: Value, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A method that every ``nn.Module`` has."""
    first = arguments.positional[0] if arguments.positional else None
    if name in _MODULE_SAME:
        return receiver
    if name in _MODULE_CASTS or name in ("to", "type"):
        dtype = frame.session.dtype(_MODULE_CASTS[name]) if name in _MODULE_CASTS else _dtype_argument(arguments)
        if isinstance(receiver, Layer):
            return converted(frame, receiver, dtype)
        return receiver if dtype is None and _only_devices(arguments) else UNKNOWN
    if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        value = arguments.get(1, {"register_buffer": "tensor", "register_parameter": "param"}.get(name, "module"))
        if isinstance(first, Const) and isinstance(first.value, str) and value is not None:
            if name == "register_buffer":
                value = buffer(frame, value, node)
            set_attribute(frame, receiver, first.value, value)
        else:
            open_instance(receiver)
        return NONE
    if name in ("parameters", "buffers"):
        return Sequence(None, _any_tensor_of(frame, receiver, name))
    if (
        name == "append"
        and isinstance(receiver, Layer)
        and isinstance(receiver.children, Sequence)
        and first is not None
    ):
        _grow(frame, receiver, first, once=True)
        return receiver
    if name == "extend" and isinstance(receiver, Layer) and isinstance(first, Sequence):
        _grow(frame, receiver, element_of(frame.session, first), once=False)
        return receiver
    if isinstance(receiver, Layer) and isinstance(receiver.children, Mapping) and name in ("items", "values"):
        values = [*receiver.children.items.values(), *([receiver.children.other] if receiver.children.other else [])]
        element = unite(*values) if values else UNKNOWN
        return Sequence(None, Sequence((UNKNOWN, element)) if name == "items" else element)
    return UNKNOWN


def _any_tensor_of(frame: Frame, receiver: Value, role: str) -> Tensor:
    """One of a module's parameters or buffers: the join of those that are seen, else what the scenario gives them."""
    held = receiver.attributes.values() if isinstance(receiver, Instance) else (receiver,)
    found: list[Value] = []
    for value in held:
        if isinstance(value, Layer):
            found.extend(value.tensors.values())
        elif isinstance(value, Tensor) and value.leaf == (role == "parameters"):
            found.append(value)
    tensors = [value for value in found if isinstance(value, Tensor)]
    joined = unite(*tensors) if tensors else None
    if isinstance(joined, Tensor):
        return replace(joined, dim=1)
    return Tensor(tuple(Lane(BITS[getattr(s, role)]) for s in frame.session.scenarios), 1)


def open_instance(value: Value) -> None:
    """Attributes were set that the inference did not see."""
    if isinstance(value, Instance):
        value.open = True


def _grow(frame: Frame, receiver: Layer, item: Value, *, once: bool) -> None:
    children = receiver.children
    if isinstance(children, Sequence):
        if once:
            changed = grown(frame, children, item)
        else:
            element = item if children.items == () else unite(element_of(frame.session, children), item)
            changed = Sequence(None, element, True)
        object.__setattr__(receiver, "children", changed)


def _only_devices(arguments: Arguments) -> bool:
    return all(isinstance(v, (Device, Const)) for v in (*arguments.positional, *arguments.keywords.values()))


def _dtype_argument(arguments: Arguments) -> DTypeValue | None:
    for value in (arguments.keywords.get("dtype"), *arguments.positional):
        if isinstance(value, DTypeValue):
            return value
    return None
