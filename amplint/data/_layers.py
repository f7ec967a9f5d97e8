"""``torch.nn`` layers: how they are constructed, what they hold, and their calls as calls of plain functions."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import random
import typing
import warnings
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.testing._internal.common_modules import module_db

from amplint.data._calls import Call, Failure, described, tensors_in
from amplint.data._catalog import LARGEST, kind_of
from amplint.data.layer_forms import FORMS
from amplint.frozen import dataclass

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ_SAMPLES, KEEP_SAMPLES = 80, 16
#: Layers with more parameters and buffers than this, or with layers inside, take theirs as one operand.
FEW = 4
#: The operand that stands for all parameters of such a layer.
PARAMETERS = "parameters"
#: Classes that hold other modules, are to be derived from, or need devices.
NOT_LAYERS = {
    "Module", "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel",
    "RNNBase", "RNNCellBase",
}  # fmt: skip
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Sample:
    """A way to construct a layer, and arguments that it takes."""

    made: Arguments
    given: Arguments


def layer_classes() -> dict[str, type[nn.Module]]:
    """Every public layer class by name."""
    found = {name: getattr(nn, name) for name in dir(nn) if name not in NOT_LAYERS}
    return {name: cls for name, cls in found.items() if isinstance(cls, type) and issubclass(cls, nn.Module)}


def samples(name: str) -> list[Sample]:
    """Unlike samples of a layer: the forms, then ModuleInfo's."""
    torch.manual_seed(0)
    random.seed(0)
    found: dict[str, Sample] = {}
    for form, made, given in FORMS:
        if form == name:
            sample = Sample(made(), given())
            found.setdefault(_key(sample), sample)
    info = next((info for info in module_db if info.module_cls is getattr(nn, name)), None)
    if info is not None:
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = info.module_inputs_func(info, "cpu", torch.float32, requires_grad=False, training=False)
            for one in itertools.islice(inputs, READ_SAMPLES):
                if one.forward_input is not None:
                    made_of, called = one.constructor_input, one.forward_input
                    sample = Sample((made_of.args, dict(made_of.kwargs)), (called.args, dict(called.kwargs)))
                    if sum(x.numel() for x in tensors_in([*sample.given[0], *sample.given[1].values()])) <= LARGEST:
                        found.setdefault(_key(sample), sample)
    return list(found.values())[:KEEP_SAMPLES]


def _key(sample: Sample) -> str:
    parts = [_kind(value) for arguments in (sample.made, sample.given) for value in arguments[0]]
    names = [f"{k}{_kind(v)}" for arguments in (sample.made, sample.given) for k, v in arguments[1].items()]
    return repr([*parts, *sorted(names)])


def _kind(value: Any) -> str:
    return "off" if type(value) is int and value == 0 else kind_of(value)


# ---- construction -----------------------------------------------------------------------------------------------


def init_parameters(cls: type[nn.Module]) -> list[inspect.Parameter]:
    """The constructor's parameters, those of its first overload where it is written for any."""
    overloads: Callable[..., Any] | None = getattr(typing, "get_overloads", None)
    signatures = [inspect.signature(one) for one in overloads(cls.__init__)] if overloads is not None else []
    chosen = next((s for s in signatures), inspect.signature(cls.__init__))
    return [p for p in list(chosen.parameters.values())[1:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def construct(cls: type[nn.Module], made: Arguments) -> nn.Module:
    """A layer with all its parameters, in float32."""
    torch.manual_seed(0)
    return cls(*made[0], **made[1])


def materialized(cls: type[nn.Module], sample: Sample) -> nn.Module | None:
    """The layer after a first call, which makes a lazy one's parameters; None where it does not run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            layer = construct(cls, sample.made)
            layer(*sample.given[0], **sample.given[1])
        except Exception:
            return None
    return layer


def held(layer: nn.Module) -> tuple[dict[str, str], dict[str, str]]:
    """Dtypes of a layer's own parameters and buffers, by name."""
    parameters = {name: described(value) for name, value in layer.named_parameters(recurse=False)}
    return parameters, {name: described(value) for name, value in layer.named_buffers(recurse=False)}


def inner_layers(layer: nn.Module) -> dict[str, str]:
    """Attributes that are layers, by the public class that they are, or derive from."""
    classes = {cls: name for name, cls in layer_classes().items()}
    found = {}
    for name, child in layer.named_children():
        public = next((classes[cls] for cls in type(child).__mro__ if cls in classes), None)
        if public is not None:
            found[name] = public
    return found


def conditions(cls: type[nn.Module], made: Arguments) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """What a layer holds with one option unlike its default: ``bias=False``, ``affine=True``, ``weight=tensor``."""
    names = [p.name for p in init_parameters(cls)]
    given = {**dict(zip(names, made[0], strict=False)), **made[1]}
    found = {}
    for parameter in init_parameters(cls):
        for value in _other_values(parameter):
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                layer = cls(**{**given, parameter.name: value})
                text = "tensor" if isinstance(value, torch.Tensor) else str(value)
                found[f"{parameter.name}={text}"] = held(layer)
    return found


def _other_values(parameter: inspect.Parameter) -> Iterator[Any]:
    if isinstance(parameter.default, bool):
        yield not parameter.default
    elif parameter.default is None and parameter.name not in ("device", "dtype"):
        yield torch.ones(4)


def takes_dtype(cls: type[nn.Module], made: Arguments) -> bool:
    """Whether ``dtype=`` makes the parameters."""
    with contextlib.suppress(Exception):
        layer = cls(*made[0], **{**made[1], "dtype": torch.float64})
        return any(parameter.dtype is torch.float64 for parameter in layer.parameters())
    return False


# ---- calls ------------------------------------------------------------------------------------------------------

MODES = ((True, True), (False, True), (False, False))
"""Whether the layer trains, and whether gradients are recorded."""


def calls_of(cls: type[nn.Module], ways: list[Sample]) -> list[Call]:
    """Calling the layer, as calls of a function of its arguments, its tensors and its options; in each mode that runs.

    The tensors are passed by name, or as one list where there are many.
    """
    layers = [(sample, layer) for sample in ways if (layer := materialized(cls, sample)) is not None]
    tensors = [_floating(layer) for _, layer in layers]
    by_name = all(len(found) <= FEW and not any("." in name for name in found) for found in tensors)
    return [
        call
        for (sample, layer), found in zip(layers, tensors, strict=True)
        for call in _calls(layer, found, sample, _options(cls, sample.made), by_name=by_name)
    ]


def _floating(layer: nn.Module) -> dict[str, torch.Tensor]:
    tensors = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    return {name: value.detach() for name, value in tensors.items() if value.is_floating_point()}


def _calls(
    layer: nn.Module, floating: dict[str, torch.Tensor], sample: Sample, options: dict[str, Any], *, by_name: bool
) -> Iterator[Call]:
    """The calls of one sample, in each mode that runs."""
    forward = inspect.signature(layer.forward).parameters.values()
    names = tuple(p.name for p in forward if p.kind is p.POSITIONAL_OR_KEYWORD)
    held_as: dict[str, Any] = floating if by_name else {PARAMETERS: list(floating.values())} if floating else {}
    kwargs = {**options, **sample.given[1], **held_as}
    for mode in MODES:
        function = _function(layer, list(floating), *mode, by_name=by_name)
        call = Call(function, sample.given[0], kwargs, names[: len(sample.given[0])], (*names, *held_as))
        if not isinstance(call.run({}), Failure):
            yield call


def _options(cls: type[nn.Module], made: Arguments) -> dict[str, Any]:
    """Options of the constructor that a result may depend on: switches, text, and numbers unlike their default."""
    names = [p.name for p in init_parameters(cls)]
    given = {**dict(zip(names, made[0], strict=False)), **made[1]}
    usual = {p.name: p.default for p in init_parameters(cls)}
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, (bool, str)) or (isinstance(value, int) and value != usual.get(name))
    }


def _function(
    layer: nn.Module, names: list[str], training: bool, gradients: bool, *, by_name: bool
) -> Callable[..., Any]:
    """The layer as a function; its tensors come as keywords, or as the list ``parameters``."""
    forward = set(inspect.signature(layer.forward).parameters)

    def run(*args: Any, **kwargs: Any) -> Any:
        values = [kwargs[name] for name in names] if by_name else kwargs.get(PARAMETERS, [])
        state = {name: value.requires_grad_() for name, value in zip(names, values, strict=True)}
        rest = {name: value for name, value in kwargs.items() if name in forward and name not in names}
        layer.train(training)
        with torch.set_grad_enabled(gradients):
            return functional_call(layer, state, args, rest)

    return run
