"""``torch.nn``: parameters, buffers, layers and what calling a layer does.

What a layer holds, and which operation on its arguments and tensors a call is, comes from the table of layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.dtypes import BITS, FLOATS, Lane
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    Device,
    DTypeValue,
    Layer,
    Mapping,
    Sequence,
    Tensor,
    Value,
)
from amplint.infer.names.definitions import Instance
from amplint.infer.names.texts import attribute_name
from amplint.infer.state.dispatch import get_attribute, set_attribute
from amplint.infer.syntax.templates import is_family
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import conversions, layer_lists, memories, packed
from amplint.infer.torch_model.layers import PARAMETERS, LayerClass, find_layer
from amplint.infer.torch_model.operations import apply
from amplint.infer.torch_model.placing import buffer, is_added, layer_tensor, place

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op
    from amplint.source import Span

MAX_PARTS = 100
"""Modules inside of a module that are looked through for parameters."""

CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)


def build_layer(frame: Frame, name: str, arguments: Arguments, node: ast.expr, *, inherited: bool = False) -> Layer:
    """Construct a ``torch.nn`` layer; ``inherited``: as the base class of the object under construction."""
    span = frame.namespace.source.span(node)
    if name in CONTAINERS:
        return Layer(name, {}, layer_lists.children(name, arguments), span)
    found = find_layer(name)
    if found is None:
        return Layer(name, {}, None, span)
    added = not inherited and not arguments.unknown and is_added(frame)
    options = arguments.bind(found.init)
    if arguments.unknown:
        options.setdefault("device", UNKNOWN)
    return _built(frame, found, options, node, span, name, added=added)


def pretrained(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Layer:
    """What ``from_pretrained`` of ``torch.nn.Embedding`` and its like gives: its weight is a tensor that was there."""
    given = arguments.get(0, "embeddings")
    weight = given if isinstance(given, Tensor) else Tensor(frame.session.unknown, 1)
    layer = build_layer(frame, name, Arguments(), node)
    return replace(layer, tensors={**layer.tensors, "weight": place(frame, weight, "parameters")})


_REPEATED = {
    "encoder_layer": "torch.nn.TransformerEncoderLayer",
    "decoder_layer": "torch.nn.TransformerDecoderLayer",
}
"""What ``nn.TransformerEncoder`` and ``-Decoder`` copy, by the name that they are given it under."""


def _built(
    frame: Frame, found: LayerClass, options: dict[str, Value], node: ast.expr, span: Span, written: str, *, added: bool
) -> Layer:
    """A layer of a class of the table, with the layers that it makes inside; ``written`` is the outermost's name.
    ``added``: it is put beside a layer that was there before."""
    tensors: dict[str, Value] = {}
    made: dict[str, Tensor] = {}
    for name in found.tensor_names(options):
        role = "buffers" if found.is_buffer(name) else "parameters"
        given = options.get(name) if name not in found.parameters else None
        if isinstance(given, Tensor):
            tensors[name] = place(frame, given, role)
        elif name in found.integers:
            tensors[name] = Tensor(frame.session.constant(BITS["int64"]), 0)
        else:
            if role not in made:
                asked = options.get("dtype")
                made[role] = layer_tensor(frame, asked, node, role, written, added=added, moved="device" in options)
            tensors[name] = made[role]
    inner: dict[object, Value] = {}
    same: dict[str, Value] = {name: options[name] for name in ("dtype", "device") if name in options}
    for attribute, short in found.inner:
        given = options.get(f"custom_{attribute}", NONE)
        cls = find_layer("torch.nn." + short) if isinstance(given, Const) and given.value is None else None
        if cls is None:
            continue
        inside = dict(same)
        for name in cls.init:
            repeated = find_layer(_REPEATED[name]) if name in _REPEATED else None
            if repeated is not None:
                inside[name] = _built(frame, repeated, same, node, span, written, added=added)
        inner[attribute] = _built(frame, cls, inside, node, span, written, added=added)
    return Layer(found.name, tensors, Mapping(inner) if inner else None, span, options)


def call_layer(frame: Frame, layer: Layer, arguments: Arguments, node: ast.expr) -> Value:
    """``layer(x, …)``."""
    first = arguments.positional[0] if arguments.positional else next(iter(arguments.keywords.values()), None)
    if first is None:
        return UNKNOWN
    if layer.name == "torch.nn.Sequential":
        return layer_lists.run(frame, layer.children, arguments, node)
    found = find_layer(layer.name)
    if found is None or found.call is None:
        frame.session.recorder.torch_call(frame, layer.name, node, {})
        return UNKNOWN
    if found.passes:
        return first
    stacked = layer.options.get("encoder_layer", layer.options.get("decoder_layer"))
    if isinstance(stacked, Layer):
        return _stacked(frame, stacked, layer.options.get("norm"), arguments, node)
    given = _with_tensors(found, found.call, layer, arguments)
    data = packed.held(first)
    if data is not None:
        given.keywords[found.forward[0]] = data
    frame.session.recorder.layer_call(frame, node, layer)
    if any(isinstance(held, Tensor) and held.host for held in layer.tensors.values()):
        memories.meets_unmoved(frame, node, first)
    result = apply(frame, found.call, given, node)
    return result if data is None else packed.packed_again(result, first)


def _with_tensors(found: LayerClass, call: Op, layer: Layer, arguments: Arguments) -> Arguments:
    """The arguments of a call by name, with the layer's tensors and the options that the result depends on."""
    keywords = {name: layer.options[name] for name in found.asks if not _is_off(layer.options.get(name))}
    nodes: dict[int | str, ast.expr] = {}
    for place_of, (name, value) in enumerate(zip(found.forward, arguments.positional, strict=False)):
        keywords[name] = value
        if place_of in arguments.nodes:
            nodes[name] = arguments.nodes[place_of]
    keywords.update(arguments.keywords)
    nodes.update({name: expression for name, expression in arguments.nodes.items() if isinstance(name, str)})
    held = layer.tensors
    if call.slots and call.slots[-1].name == PARAMETERS:
        tensors = list(_floating(layer))
        held = {PARAMETERS: tensors[0] if len({t.dtypes for t in tensors}) == 1 else Sequence(tuple(tensors))}
        held = held if tensors else {}
    for name, tensor in held.items():
        if name in call.params:
            keywords[name] = tensor
            if arguments.callee is not None:
                nodes[name] = arguments.callee
    return Arguments([], keywords, nodes, arguments.unknown)


def _is_off(option: Value | None) -> bool:
    """Whether an option is not given, or a number that is 0, as where it is not."""
    return option is None or (isinstance(option, Const) and type(option.value) is int and option.value == 0)


def _floating(layer: Layer) -> Iterator[Tensor]:
    """The floating tensors of a layer and of those inside it."""
    for tensor in layer.tensors.values():
        if isinstance(tensor, Tensor) and any(lane.mask & FLOATS or not lane.mask for lane in tensor.dtypes):
            yield tensor
    children = layer.children.items.values() if isinstance(layer.children, Mapping) else ()
    for child in (*children, *(layer.options[name] for name in _REPEATED if name in layer.options)):
        if isinstance(child, Layer):
            yield from _floating(child)


LAYER_COST = 100
"""Values that calling a whole transformer layer costs as much as."""


def _stacked(frame: Frame, stacked: Layer, norm: Value | None, arguments: Arguments, node: ast.expr) -> Value:
    """``nn.TransformerEncoder`` and ``-Decoder``: copies of a layer one after the other, then a norm."""
    frame.session.spend(LAYER_COST)
    value = call_layer(frame, stacked, arguments, node)
    again = Arguments([value, *arguments.positional[1:]], arguments.keywords, arguments.nodes, arguments.unknown)
    value = unite(value, call_layer(frame, stacked, again, node))
    return call_layer(frame, norm, Arguments([value]), node) if isinstance(norm, Layer) else value


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
_MOVING = frozenset(("to", "cuda", "xpu", "to_empty"))
_MODULE_CASTS = {"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
GIVING_BACK = _MODULE_SAME | _MOVING | frozenset((*_MODULE_CASTS, "type"))
"""Methods of a module that give the module itself."""
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
            "get_buffer",
            "get_parameter",
            "get_submodule",
            "parameters",
            "named_parameters",
            "buffers",
            "named_buffers",
            "modules",
            "children",
            "named_modules",
            "named_children",
            "append",
            "extend",
            "insert",
            "update",
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
_MODULE_FIELDS = frozenset(("training", "forward", "dump_patches", "call_super_init", "extra_repr", "ipu", "mtia"))
_MODULE_RARELY = frozenset(
    [
        "T_destination",
        "get_extra_state",
        "set_extra_state",
        "set_submodule",
        "register_backward_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "register_load_state_dict_post_hook",
        "register_load_state_dict_pre_hook",
        "register_state_dict_post_hook",
        "register_state_dict_pre_hook",
    ]
)
"""What else ``torch.nn.Module`` has that begins with no underscore, of which nothing here is known."""


def of_every_module(name: str) -> bool:
    """Whether every module has an attribute of that name, or may have: torch's own change with its releases."""
    return name.startswith("_") or name in MODULE_METHODS | _MODULE_FIELDS | _MODULE_RARELY


REGISTERING = frozenset(("register_buffer", "register_parameter", "add_module", "register_module"))
"""Methods that set an attribute of the module itself, whatever it derives from."""


_GETTING = frozenset(("get_buffer", "get_parameter", "get_submodule"))
"""Methods that give what a path of attribute names leads to."""


def call_module_method(frame: Frame, receiver: Value, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A method that every ``nn.Module`` has."""
    first = arguments.positional[0] if arguments.positional else None
    if name in _MOVING and not (_given(arguments) and all(isinstance(v, DTypeValue) for v in _given(arguments))):
        receiver = conversions.moved(frame, receiver, node)
    if name in _MODULE_SAME:
        return receiver
    if name in _MODULE_CASTS or name in ("to", "type"):
        dtype = frame.session.dtype(_MODULE_CASTS[name]) if name in _MODULE_CASTS else _dtype_argument(arguments)
        if dtype is not None:
            return conversions.convert(frame, receiver, dtype, node)
        return receiver if isinstance(receiver, Layer) or _only_devices(arguments) else UNKNOWN
    if name in _GETTING:
        return _named_inside(frame, receiver, first, node)
    if name in ("add_module", "register_module") and isinstance(receiver, Layer):
        layer_lists.add(frame, receiver, first, arguments.get(1, "module") or UNKNOWN)
        return NONE
    if name == "insert" and isinstance(receiver, Layer):
        layer_lists.grow(frame, receiver, arguments.get(1, "module") or UNKNOWN, once=False)
        return NONE
    if name in REGISTERING:
        value = arguments.get(1, {"register_buffer": "tensor", "register_parameter": "param"}.get(name, "module"))
        attribute = attribute_name(arguments.get(0, "name"))
        if attribute is not None and value is not None:
            value = buffer(frame, value, node) if name == "register_buffer" else value
            set_attribute(frame, receiver, attribute, value)
        else:
            open_instance(receiver)
        return NONE
    if name == "children" and isinstance(receiver, Layer):
        return layer_lists.held_by(receiver)
    if name in ("parameters", "buffers", "named_parameters", "named_buffers"):
        tensor = _any_tensor_of(frame, receiver, name.removeprefix("named_"), node)
        return Sequence(None, Sequence((Builtin("str"), tensor)) if name.startswith("named_") else tensor)
    if name == "state_dict":
        return Mapping({}, _tensors_seen(receiver, "parameters") or UNKNOWN)
    if (
        name == "append"
        and isinstance(receiver, Layer)
        and isinstance(receiver.children, Sequence)
        and first is not None
    ):
        layer_lists.grow(frame, receiver, first, once=True)
        return receiver
    if name == "extend" and isinstance(receiver, Layer):
        added = element_of(frame.session, first) if isinstance(first, Sequence) else UNKNOWN
        layer_lists.grow(frame, receiver, added, once=False)
        return receiver
    if isinstance(receiver, Layer) and isinstance(receiver.children, Mapping) and name == "update":
        receiver.children.update((first.children if isinstance(first, Layer) else first) or UNKNOWN)
        return NONE
    if isinstance(receiver, Layer) and isinstance(receiver.children, Mapping) and name in ("items", "values"):
        values = [*receiver.children.items.values(), *([receiver.children.other] if receiver.children.other else [])]
        element = unite(*values) if values else UNKNOWN
        return Sequence(None, Sequence((UNKNOWN, element)) if name == "items" else element)
    return UNKNOWN


def _named_inside(frame: Frame, module: Value, path: Value | None, node: ast.expr) -> Value:
    """What a dotted path of attribute names leads to inside a module."""
    for name in (attribute_name(path) or "").split("."):
        followed = isinstance(module, Instance) or not is_family(name)
        module = get_attribute(frame, module, name, node) if followed else UNKNOWN
    return module


def _tensors_seen(receiver: Value, role: str) -> Tensor | None:
    """The join of those of a module's parameters or buffers that are seen, in the modules inside of it too."""
    found: list[Value] = []
    pending, seen = [receiver], {id(receiver)}
    while pending and len(seen) <= MAX_PARTS:
        module = pending.pop()
        found.extend(module.tensors.values() if isinstance(module, Layer) else ())
        for part in _parts(module):
            if isinstance(part, Tensor) and part.leaf == (role == "parameters"):
                found.append(part)
            elif isinstance(part, (Layer, Instance)) and id(part) not in seen:
                seen.add(id(part))
                pending.append(part)
    tensors = [value for value in found if isinstance(value, Tensor)]
    joined = unite(*tensors) if tensors else None
    return replace(joined, dim=1) if isinstance(joined, Tensor) else None


def _parts(module: Value) -> Iterator[Value]:
    """What a module has in its attributes, or holds."""
    if isinstance(module, Instance):
        held: Iterable[Value] = module.attributes.values()
    elif isinstance(module, Layer) and isinstance(module.children, Sequence):
        held = module.children.rests_on
    elif isinstance(module, Layer) and isinstance(module.children, Mapping):
        held = module.children.items.values()
    else:
        return
    for value in held:
        yield from options_of(value)


def _any_tensor_of(frame: Frame, receiver: Value, role: str, node: ast.expr) -> Tensor:
    """One of a module's parameters or buffers: the join of those that are seen, else what the scenario gives them."""
    seen = _tensors_seen(receiver, role)
    if seen is not None:
        return seen
    dtypes = tuple(Lane(BITS[getattr(s, role)]) for s in frame.session.scenarios)
    learned = role == "parameters"
    origin = replace(frame.here(node, f"{role} of a module", dtypes), placed=True, parameter=learned)
    origin = replace(origin, handed=isinstance(receiver, Layer) and receiver.span is None)
    return Tensor(dtypes, 1, origin, leaf=learned)


def open_instance(value: Value) -> None:
    """Attributes were set that the inference did not see."""
    if isinstance(value, Instance):
        value.open = True


def _given(arguments: Arguments) -> tuple[Value, ...]:
    return (*arguments.positional, *arguments.keywords.values())


def _only_devices(arguments: Arguments) -> bool:
    return all(isinstance(v, (Device, Const)) for v in _given(arguments))


def _dtype_argument(arguments: Arguments) -> DTypeValue | None:
    for value in (arguments.keywords.get("dtype"), *arguments.positional):
        if isinstance(value, DTypeValue):
            return value
    return None
