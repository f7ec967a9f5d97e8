"""Python's builtins and the few library functions whose results matter to dtypes."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.dtypes import BITS, FLOAT32, FLOATS, LOW
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    External,
    FloatLimits,
    Layer,
    Limit,
    Mapping,
    Number,
    Partial,
    Sequence,
    Tensor,
    Text,
    TorchName,
    Value,
    extreme,
    extreme_of,
)
from amplint.infer.machine import containers, families, fields, named_axes
from amplint.infer.names import other_devices
from amplint.infer.names.classes import ancestry, find_member, has_unknown_base, is_plain, torch_base
from amplint.infer.names.definitions import Class, Function, Instance, Super
from amplint.infer.names.texts import is_callable_kind, text_of
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.state.dispatch import call
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import comm_hooks, distributions, versions
from amplint.infer.torch_model.attention_kernels import call_kernel, find_kernel
from amplint.infer.torch_model.datasets import Dataset
from amplint.infer.torch_model.layer_lists import is_layer_of, iterated
from amplint.infer.torch_model.mmcv_regions import FORCE_FP32, force_fp32
from amplint.infer.torch_model.modules import of_every_module
from amplint.infer.torch_model.torch_names import has
from amplint.infer.torch_model.torch_ops import find_op, measured_release

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

BUILTIN_NAMES = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "callable",
        "dict",
        "enumerate",
        "filter",
        "float",
        "getattr",
        "hasattr",
        "id",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "print",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "slice",
        "sorted",
        "staticmethod",
        "classmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "vars",
        "zip",
        "object",
    ]
)

_NUMBERS = {
    "len": "int",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "hasattr": "bool",
    "callable": "bool",
    "issubclass": "bool",
    "id": "int",
    "any": "bool",
    "all": "bool",
}

_NUMPY_NUMBERS = frozenset(
    f"numpy.{name}" for name in ("sqrt", "log", "log2", "log10", "exp", "sin", "cos", "tan", "float64")
)
"""Functions that make a float64 scalar of a Python number: ``numpy.float64`` is a ``float``."""
_SAME = (
    *("einops.rearrange", "einops.repeat", "einops.reduce", "einops.asnumpy", "copy.deepcopy", "copy.copy"),
    *(f"einops_exts.{name}_with_anon_dims" for name in ("rearrange", "repeat", "reduce")),
)
_SHAPING_LAYERS = ("einops.layers.torch.Rearrange", "einops.layers.torch.Reduce")
_IN_FLOAT32 = ("sum", "prod")
"""Reductions that autocast does in float32."""
_SAME_EACH = tuple(f"einops_exts.{name}_many" for name in ("rearrange", "repeat", "reduce"))
"""Functions that do to each of several tensors what keeps its dtype."""
_IDENTITY_DECORATORS = (
    "functools.wraps",
    "functools.lru_cache",
    "functools.cache",
    "functools.cached_property",
    "typing.overload",
    "typing.final",
    "typing_extensions.deprecated",
    "typing_extensions.override",
    "abc.abstractmethod",
    "contextlib.contextmanager",
)


def call_builtin(frame: Frame, value: Builtin, arguments: Arguments, node: ast.expr) -> Value:
    """Call a Python builtin, or a method of a list, dict or string."""
    name, first = value.name, arguments.positional[0] if arguments.positional else None
    if name == "hasattr" and isinstance(first, Instance) and frame.constructing is first:
        return Number("bool") if id(node) in demanded(frame.namespace.tree) else _has_already(first, arguments)
    if name == "hasattr" and isinstance(first, TorchName):
        return _in_torch(frame, first, arguments)
    if name == "int" and isinstance(first, Const) and isinstance(first.value, str) and first.value.isdecimal():
        return Const(int(first.value))
    if name in ("any", "all") and isinstance(first, Sequence):
        return _of_all(frame, first, name == "all")
    if name in _NUMBERS:
        return Number(_NUMBERS[name], extreme=_number_in(first) if name in ("float", "int") else None)
    if name == "isinstance":
        return _isinstance(*arguments.positional) if len(arguments.positional) == 2 else Number("bool")
    if name == "super":
        if len(arguments.positional) == 2 and frame.owner is not None:
            return Super(arguments.positional[1], frame.owner)
        return Super(frame.receiver, frame.owner) if frame.receiver is not None and frame.owner is not None else UNKNOWN
    if name == "range":
        return Sequence(None, Number("int"))
    if name == "getattr" and first is not None and len(arguments.positional) > 1:
        return families.read_by_name(frame, arguments, node)
    if name == "setattr" and isinstance(first, Instance):
        return families.set_by_name(frame, first, arguments)
    if name in ("list", "tuple", "sorted", "reversed", "iter", "set"):
        return _as_sequence(frame, first, name != "tuple") if first is not None else Sequence((), mutable=True)
    if name == "dict":
        if isinstance(first, Mapping):
            return Mapping({**first.items, **_by_name(arguments)}, first.other, inside=frame.number)
        pairs = _pairs(first)
        if pairs is not None:
            return Mapping({**pairs, **_by_name(arguments)}, inside=frame.number)
        pair = element_of(frame.session, first) if isinstance(first, Sequence) else UNKNOWN
        if isinstance(pair, Sequence) and pair.items is not None and len(pair.items) == 2:
            return Mapping(_by_name(arguments), pair.items[1], inside=frame.number)
        other = UNKNOWN if arguments.unknown or first is not None else None
        return Mapping(_by_name(arguments), other, inside=frame.number)
    if name == "next":
        return element_of(frame.session, first) if isinstance(first, Sequence) else UNKNOWN
    if name == "enumerate":
        element = _element(frame, first)
        return Sequence(None, Sequence((Number("int"), element)))
    if name == "zip" and arguments.rest is not None:
        if isinstance(arguments.rest, Sequence) and arguments.rest.items and not arguments.positional:
            return Sequence(tuple(Sequence(None, item) for item in arguments.rest.items))
        return Sequence(None, Sequence(None, _element(frame, arguments.rest)))
    if name == "zip":
        return Sequence(None, Sequence(tuple(_element(frame, a) for a in arguments.positional)))
    if name == "map" and len(arguments.positional) == 2:
        second = arguments.positional[1]
        if isinstance(second, Sequence) and second.items is not None and len(second.items) <= 4:
            return Sequence(tuple(call(frame, first or UNKNOWN, Arguments([item]), node) for item in second.items))
        return Sequence(None, call(frame, first or UNKNOWN, Arguments([_element(frame, second)]), node))
    if name in ("max", "min", "abs", "sum", "round"):
        if name in ("abs", "round") and isinstance(first, Tensor):
            return first
        options = arguments.positional if len(arguments.positional) > 1 else [_element(frame, first)]
        if all(isinstance(o, (Const, Number)) for o in options):
            return Number("float" if any(isinstance(o, Number) and o.kind == "float" for o in options) else "int")
        tensors = [o for o in options if isinstance(o, Tensor)]
        found = unite(*tensors) if tensors and len(tensors) == len(options) else UNKNOWN
        return _added(found) if name == "sum" and isinstance(found, Tensor) else found
    if name == "str":
        return UNKNOWN
    if value.receiver is not None:
        return _python_method(frame, value.receiver, name, arguments)
    return comm_hooks.contents(frame, name) or distributions.sampled(frame, name, arguments, node) or UNKNOWN


def _added(element: Tensor) -> Tensor:
    """The sum of tensors: of both low dtypes torch makes float32."""
    lanes = [lane._replace(mask=lane.mask | FLOAT32) if lane.mask & LOW == LOW else lane for lane in element.dtypes]
    return replace(element, dtypes=tuple(lanes)) if lanes != [*element.dtypes] else element


def _number_in(value: Value | None) -> float | Limit | None:
    """What ``float`` and ``int`` read, where that is extreme: a number, or a literal such as ``"-1e20"``."""
    if isinstance(value, Const) and isinstance(value.value, str):
        with suppress(ValueError):
            return extreme(float(value.value))
    return extreme_of(value)


def _has_already(instance: Instance, arguments: Arguments) -> Value:
    """``hasattr`` of an object whose constructor runs: false for what nothing has set and no class has."""
    asked = arguments.get(1, "name")
    if isinstance(asked, Const) and isinstance(asked.value, str) and not instance.open:
        name = asked.value
        known = name in instance.attributes or find_member(instance.cls, name) is not None
        if is_plain(instance.cls) and not known and not of_every_module(name):
            return Const(False)
    return Number("bool")


@once_for_each_node
def demanded(tree: ast.Module) -> frozenset[int]:
    """``id`` of the calls in assertions and in tests under which code raises.

    ``if not hasattr(self, "model"): raise`` is for a class whose subclasses set that before they construct it.
    """
    tests = (node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.Assert)))
    refusing = (node.test for node in tests if isinstance(node, ast.Assert) or isinstance(node.body[-1], ast.Raise))
    return frozenset(id(part) for test in refusing for part in ast.walk(test) if isinstance(part, ast.Call))


def _of_all(frame: Frame, answers: Sequence, wanted: bool) -> Value:
    """``all(answers)`` where ``wanted`` is true, else ``any(answers)``: known where torch gives each, and none stands
    against it."""
    given = answers.items if answers.items is not None else (element_of(frame.session, answers),)
    alike = all(isinstance(each, AutocastFlag) and (each.off if wanted else each.on) == 0 for each in given)
    return versions.answer(frame.session, holds=wanted) if given and alike else Number("bool")


def _in_torch(frame: Frame, place: TorchName, arguments: Arguments) -> Value:
    """``hasattr(torch.nn.functional, "rms_norm")``, by what the release has that is judged."""
    asked = arguments.get(1, "name")
    if not isinstance(asked, Const):
        return Number("bool")
    name, release = f"{place.name}.{asked.value}", frame.session.torch_version
    held = has(name, release)
    if held is None and release >= measured_release() and find_op(canonical(name), release) is not None:
        held = True
    return Number("bool") if held is None else versions.answer(frame.session, holds=held)


def _isinstance(value: Value, kinds: Value) -> Value:
    """``isinstance``, where what is known of the value decides it."""
    verdicts = {is_instance(option, kinds) for option in options_of(value)}
    verdict = verdicts.pop()
    return Number("bool") if verdicts or verdict is None else Const(verdict)


def is_instance(value: Value, kinds: Value) -> bool | None:
    """Whether a value is an instance of a type, or of one of several; None where that is not known."""
    several = kinds.items or (UNKNOWN,) if isinstance(kinds, Sequence) else (kinds,)
    answers = {_is_a(value, kind) for kind in several}
    return True if True in answers else None if None in answers else False


_ARRAY_LIBRARIES = frozenset(("numpy", "PIL", "jax", "tensorflow", "mlx"))
"""Libraries with arrays and images of their own, none of whose classes is a tensor of torch."""


def _is_a(value: Value, kind: Value) -> bool | None:
    """Whether a value is an instance of a type; None where that is not known."""
    if isinstance(kind, TorchName) and kind.name == "torch.Tensor":
        if isinstance(value, Tensor):
            return None if value.maybe else True
        return False if isinstance(value, (Const, Number, Sequence, Mapping, Layer)) else None
    if isinstance(kind, Builtin) and kind.name in ("dict", "list", "tuple", "str", "int", "float"):
        if isinstance(value, Sequence):
            return kind.name == ("list" if value.mutable else "tuple") and not isinstance(value, Dataset)
        if isinstance(value, Mapping):
            return kind.name == "dict"
        if isinstance(value, Const):
            return type(value.value).__name__ == kind.name
        if isinstance(value, Number):
            return value.kind == kind.name
        if isinstance(value, (Class, Function, Partial, TorchName, Layer)):
            return False
        if isinstance(value, Tensor) and not value.maybe:
            return False
    if isinstance(kind, TorchName) and isinstance(value, (Layer, Instance)):
        return is_layer_of(value, kind.name)
    if isinstance(kind, Builtin) and kind.name == "str" and isinstance(value, Text):
        return True
    if isinstance(kind, External) and kind.name.partition(".")[0] in _ARRAY_LIBRARIES and isinstance(value, Tensor):
        return None if value.maybe else False
    if isinstance(kind, (External, Builtin)):
        return is_callable_kind(value, kind.name)
    if isinstance(kind, Class) and isinstance(value, Instance):
        if any(isinstance(base, Class) and base.node is kind.node for base in ancestry(value.cls)):
            return True
        return None if has_unknown_base(value.cls) else False
    if isinstance(kind, Class) and isinstance(value, Layer):
        return None if torch_base(kind) == value.name or value.span is None else False
    return None


def _pairs(value: Value | None) -> dict[object, Value] | None:
    """The dict of a sequence of pairs with known keys; None for anything else."""
    if not isinstance(value, Sequence) or value.items is None:
        return None
    pairs: dict[object, Value] = {}
    for pair in value.items:
        if not isinstance(pair, Sequence) or pair.items is None or len(pair.items) != 2:
            return None
        key = pair.items[0]
        if not isinstance(key, Const):
            return None
        pairs[key.value] = pair.items[1]
    return pairs


def _by_name(arguments: Arguments) -> dict[object, Value]:
    return dict(arguments.keywords.items())


def _as_sequence(frame: Frame, value: Value, mutable: bool) -> Value:
    if isinstance(value, Sequence):
        return Sequence(value.items, value.element, mutable)
    if isinstance(value, Layer) and isinstance(value.children, Sequence):
        return Sequence(value.children.items, value.children.element, mutable)
    if isinstance(value, Tensor) and not value.maybe:
        return Sequence(None, value.part, mutable)
    return Sequence(None, UNKNOWN, mutable)


def _element(frame: Frame, value: Value | None) -> Value:
    value = iterated(frame, value) if value is not None else None
    if isinstance(value, Sequence):
        return element_of(frame.session, value)
    if isinstance(value, Tensor) and not value.maybe:
        return value.part
    return UNKNOWN


def _python_method(frame: Frame, receiver: Value, name: str, arguments: Arguments) -> Value:
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if isinstance(receiver, Mapping):
        if name in ("get", "pop", "setdefault"):
            default = arguments.positional[1] if len(arguments.positional) > 1 else NONE
            if isinstance(first, Const) and first.value in receiver.items:
                return receiver.items[first.value]
            text = text_of(first)
            if text is not None and text in receiver.items:
                return containers.mapping_item(frame, receiver, first)
            if name == "setdefault" and isinstance(first, Const) and not receiver.shared:
                receiver.items[first.value] = default
            return unite(receiver.other, default) if receiver.other is not None else default
        if name == "items":
            values = [*receiver.items.values(), *([receiver.other] if receiver.other else [])]
            return Sequence(None, Sequence((UNKNOWN, unite(*values)))) if values else Sequence(())
        if name == "values":
            values = [*receiver.items.values(), *([receiver.other] if receiver.other else [])]
            return Sequence(None, unite(*values)) if values else Sequence(())
        if name == "update" and not receiver.shared:
            receiver.update(first)
            receiver.items.update(arguments.keywords)
            return NONE
        if name == "copy":
            return Mapping(dict(receiver.items), receiver.other, inside=frame.number)
        return UNKNOWN
    if isinstance(receiver, Sequence) and name in ("pop", "__getitem__"):
        return element_of(frame.session, receiver)
    if isinstance(receiver, Sequence) and name == "copy":
        return receiver
    return UNKNOWN


def call_external(frame: Frame, value: External, arguments: Arguments, node: ast.expr) -> Value:
    """Call a function of another library: dtype-preserving ones, ``functools``, ``math``; else unknown."""
    name, first = value.name, arguments.positional[0] if arguments.positional else None
    if name.partition(".")[0] in other_devices.LIBRARIES:
        frame.live = 0
        return UNKNOWN
    if name == "functools.partial" and first is not None:
        return Partial(first, tuple(arguments.positional[1:]), dict(arguments.keywords))
    if name in _SAME and first is not None:
        shaped = named_axes.reshaped(first)
        if isinstance(shaped, Tensor):
            return replace(shaped, dim=1) if named_axes.leaves_dimensions(arguments) else shaped
        if isinstance(first, Sequence):
            return element_of(frame.session, first)
        return first if name.startswith("copy.") else UNKNOWN
    if name in versions.PARSERS:
        return versions.parsed(arguments) or UNKNOWN
    if name in FORCE_FP32:
        return force_fp32(frame.session, arguments)
    if name in _SHAPING_LAYERS:
        return _shaping_layer(frame, arguments, node)
    kernel = find_kernel(name)
    if kernel is not None:
        return call_kernel(frame, name, kernel, arguments, node)
    if name in _SAME_EACH and isinstance(first, Sequence):
        items = tuple(map(named_axes.reshaped, first.items)) if first.items is not None else None
        return Sequence(items, named_axes.reshaped(first.element))
    if name == "einops.einsum" and len(arguments.positional) > 1:
        return named_axes.einsum(frame, arguments, node)
    if name.startswith("einx."):
        return named_axes.einx(frame, name.removeprefix("einx."), arguments, node)
    if name == "einops.pack" and isinstance(first, Sequence):
        return Sequence((element_of(frame.session, first), UNKNOWN))
    if name == "einops.unpack" and isinstance(first, Tensor):
        return Sequence(None, Tensor(first.dtypes, None, first.origin, first.maybe), True)
    if name in _NUMPY_NUMBERS and first is not None and all(isinstance(v, (Const, Number)) for v in options_of(first)):
        return Number("float")
    if name == "numpy.finfo":
        return _limits(frame, first)
    if name.startswith("math."):
        return Number("int" if name in ("math.ceil", "math.floor", "math.prod") else "float")
    if name in _IDENTITY_DECORATORS:
        if isinstance(first, Function) and name != "functools.wraps":
            return first
        return External("functools.wraps.decorator")
    if name == "functools.wraps.decorator" and first is not None:
        return first
    if name in ("itertools.chain", "itertools.chain.from_iterable") and first is not None:
        parts = arguments.positional if name == "itertools.chain" else [_element(frame, first)]
        return Sequence(None, unite(*(_element(frame, part) for part in parts)))
    if name == "dataclasses.field":
        made = arguments.keywords.get("default_factory")
        return call(frame, made, Arguments(), node) if made is not None else arguments.keywords.get("default", UNKNOWN)
    if name == "dataclasses.replace" and first is not None:
        return fields.replaced(frame, first, arguments, node)
    if name == "itertools.repeat" and first is not None:
        return Sequence(None, first)
    if name == "collections.OrderedDict":
        return call_builtin(frame, Builtin("dict"), arguments, node)
    if name == "typing.cast" and len(arguments.positional) == 2:
        return arguments.positional[1]
    return UNKNOWN


def _limits(frame: Frame, of: Value | None) -> Value:
    """``numpy.finfo`` of a dtype of numpy's, as torch's own of the same name."""
    dtype = of.name.rpartition(".")[2] if isinstance(of, External) else of.value if isinstance(of, Const) else None
    bit = BITS.get(dtype, 0) & FLOATS if isinstance(dtype, str) else 0
    return FloatLimits(frame.session.constant(bit)) if bit else UNKNOWN


def _shaping_layer(frame: Frame, arguments: Arguments, node: ast.expr) -> Value:
    """A layer of einops, which gives the dtype that it gets; not known of one that reduces as autocast does not."""
    reduction = arguments.positional[1] if len(arguments.positional) > 1 else arguments.keywords.get("reduction", NONE)
    fits = isinstance(reduction, Const) and reduction.value not in _IN_FLOAT32
    return call(frame, TorchName("torch.nn.Flatten"), Arguments(), node) if fits else UNKNOWN
