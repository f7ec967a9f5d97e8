"""One run of a target: a scenario made real, forward in its region, backward outside of it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import typing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.frozen import dataclass
from amplint.verify.build.recipe import seed_everything
from amplint.verify.half_convolutions import half_convolutions
from amplint.verify.modes import Call, invoke, passed
from amplint.verify.tensors import dtype_named, replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.verify.build import Built, Recipe


@dataclass(frozen=True)
class Where:
    """On which hardware, by whose cast policy; ``capability`` is that of the imagined GPU."""

    device: str
    run_on: str
    capability: tuple[int, int] | None = None

    @property
    def emulated(self) -> str | None:
        """The device whose policy lies over CPU kernels."""
        return self.device if self.run_on == "cpu" and self.device != "cpu" else None

    @contextlib.contextmanager
    def policy(self) -> Iterator[set[str]]:
        """The device's cast policy over CPU kernels, where that is asked for.

        Gives the names of the questions about the GPU's abilities that the code asks inside.
        """
        asked: set[str] = set()
        if self.emulated is None:
            yield asked
            return
        from amplint.emulation import emulated

        options = {"capability": self.capability} if self.capability else {}
        with emulated(self.emulated, **options), _noting(asked):
            yield asked


_ABILITIES = ("get_device_capability", "get_device_properties", "get_device_name", "is_bf16_supported")
_TORCH = os.path.dirname(torch.__file__) + os.sep


@contextlib.contextmanager
def _noting(asked: set[str]) -> Iterator[None]:
    """Note which of torch.cuda's questions are asked by code other than torch's own."""
    before = {name: getattr(torch.cuda, name) for name in _ABILITIES}

    def noting(name: str) -> Callable[..., Any]:
        @functools.wraps(before[name])
        def answer(*args: Any, **kwargs: Any) -> Any:
            if not sys._getframe(1).f_code.co_filename.startswith(_TORCH):
                asked.add(name)
            return before[name](*args, **kwargs)

        return answer

    for name in _ABILITIES:
        setattr(torch.cuda, name, noting(name))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(torch.cuda, name, function)


@dataclass(frozen=True)
class Run:
    """What a run gave: detached floating results and gradients on the CPU, or the error; ``inputs`` in one line.

    ``unlike``: complex numbers that no cast makes as narrow as the rest. Torch has none of bfloat16, and casts of a
    module disagree about complex parameters: ``to(dtype)`` makes them real, ``half()`` leaves them.
    """

    outputs: tuple[torch.Tensor, ...] = ()
    gradients: tuple[torch.Tensor, ...] = ()
    error: BaseException | None = None
    inputs: str = ""
    unlike: bool = False


def run(
    recipe: Recipe,
    scenario: Scenario,
    call: Call,
    where: Where,
    *,
    watch: contextlib.AbstractContextManager[Any] | None = None,
    inputs: torch.dtype | None = None,
    rounded: torch.dtype | None = None,
    loss_scale: float = 1.0,
    seed: int = 0,
) -> Run:
    """Build the target afresh and run it once, inside of ``where.policy()``. Errors of the target are returned.

    ``watch`` is entered when all is built, for instruments. ``inputs`` is the dtype of float inputs, where that is not
    the scenario's. ``rounded`` rounds parameters and float inputs to that dtype and back, so that a float32 run shows
    what rounding alone changes. The loss is the sum of the means of all results, times ``loss_scale``.
    """
    inputs_text, unlike = "", False
    with contextlib.ExitStack() as stack:
        try:
            built = prepare(recipe, scenario, call, where, inputs)
            if rounded is not None:
                built = _rounded(built, rounded)
            inputs_text = passed(call, built)
            unlike = recipe.guessed and _stays_complex(built, scenario)
            seed_everything(seed)
            if where.emulated is not None and "float16" in (scenario.autocast, scenario.parameters):
                stack.enter_context(half_convolutions())
            stack.enter_context(watch or contextlib.nullcontext())
            with torch.set_grad_enabled(call.mode in ("train", "eval")):
                with region(scenario.autocast, where):
                    result = invoke(call, built)
                outputs = [t for t in tensors(result) if t.is_floating_point() or t.is_complex()]
                losses = [o.float().mean() for o in outputs if o.requires_grad and o.is_floating_point()]
                if losses and torch.is_grad_enabled():
                    torch.autograd.backward(torch.stack(losses).sum() * loss_scale)
            gradients = _gradients(built)
            stack.close()
            return Run(
                tuple(o.detach().cpu() for o in outputs), tuple(g.detach().cpu() for g in gradients), inputs=inputs_text
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Run(error=error, inputs=inputs_text, unlike=unlike)


def region(low: str | None, where: Where) -> contextlib.AbstractContextManager[Any]:
    """Autocast to a low dtype; nothing where that is None."""
    context = torch.autocast(where.device, dtype=dtype_named(low)) if low is not None else contextlib.nullcontext()
    return typing.cast("contextlib.AbstractContextManager[Any]", context)


def prepare(recipe: Recipe, scenario: Scenario, call: Call, where: Where, inputs: torch.dtype | None = None) -> Built:
    """The target with the scenario's parameters, buffers and inputs, in the mode's training flag, on its hardware."""
    if scenario.keeps_explicit:
        with _default_dtype(dtype_named(scenario.parameters)):
            built = recipe.make()
        built = _with_values_of(recipe.make(), built)
        low = dtype_named(scenario.inputs)
    else:
        built = recipe.make()
        for module in _modules(built):
            _cast_module(module, scenario)
        low = inputs or dtype_named(scenario.inputs)
    if low is not torch.float32:
        built = _with_inputs(built, lambda t: _lowered(t, low) if t.dtype in (torch.float32, torch.complex64) else t)
    if recipe.guessed and scenario.parameters != "float32":
        built = _computing_in(built, dtype_named(scenario.parameters))
    if where.run_on == "cuda":
        for module in _modules(built):
            module.to("cuda")
        built = _with_inputs(built, lambda t: t.to("cuda"))
    for module in _modules(built):
        module.train(call.mode == "train")
    if call.mode in ("train", "eval"):
        built = _with_inputs(built, _differentiable if call.differentiable else torch.Tensor.detach)
    return built


def _lowered(tensor: torch.Tensor, low: torch.dtype) -> torch.Tensor:
    """Floats in ``low``, and complex numbers of float32 in those of float16 where that is ``low``.

    ``Module.to(low)`` would make complex parameters real; ``Module.half()`` would leave them as they are.
    """
    if tensor.is_floating_point():
        return tensor.to(low)
    return tensor.to(torch.complex32) if tensor.dtype is torch.complex64 and low is torch.float16 else tensor


def _stays_complex(built: Built, scenario: Scenario) -> bool:
    """Whether parameters, or inputs in bfloat16, are complex where the scenario has low precision."""
    held = [tensor for module in _modules(built) for tensor in (*module.parameters(), *module.buffers())]
    given = list(tensors((built.args, built.kwargs))) if scenario.inputs == "bfloat16" else []
    return scenario.inputs != "float32" and any(tensor.is_complex() for tensor in (*held, *given))


def _modules(built: Built) -> list[torch.nn.Module]:
    """The module, and those that are passed to it."""
    values = (built.module, *built.args, *built.kwargs.values())
    return [value for value in values if isinstance(value, torch.nn.Module)]


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """What constructors without a dtype give, for a while."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _computing_in(built: Built, dtype: torch.dtype) -> Built:
    """Arguments that say which dtype to compute in say that one, as a caller with such a model would."""
    return replace(
        built,
        args=tuple(dtype if arg is torch.float32 else arg for arg in built.args),
        kwargs={name: dtype if value is torch.float32 else value for name, value in built.kwargs.items()},
    )


def _cast_module(module: torch.nn.Module, scenario: Scenario) -> None:
    if scenario.parameters == scenario.buffers:
        if scenario.parameters != "float32":
            module._apply(functools.partial(_lowered, low=dtype_named(scenario.parameters)))
        return
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype_named(scenario.parameters))


def _with_values_of(source: Built, target: Built) -> Built:
    """The target with the source's numbers in its own dtypes: a low default dtype draws other random numbers."""
    if isinstance(source.module, torch.nn.Module) and isinstance(target.module, torch.nn.Module):
        state = _held(source.module)
        with torch.no_grad():
            for name, value in _held(target.module).items():
                other = state.get(name)
                if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor) and other.shape == value.shape:
                    value.copy_(other)
    values = list(tensors((source.args, source.kwargs)))
    places = list(tensors((target.args, target.kwargs)))
    if len(values) != len(places) or any(v.shape != p.shape for v, p in zip(values, places, strict=True)):
        return target
    by_place = {id(place): value for value, place in zip(values, places, strict=True)}

    def value_of(tensor: torch.Tensor) -> torch.Tensor:
        value = by_place.get(id(tensor))
        return tensor if value is None else value.detach().to(tensor.dtype).requires_grad_(tensor.requires_grad)

    return _with_inputs(target, value_of)


def _held(module: torch.nn.Module) -> dict[str, Any]:
    """Parameters and buffers, and the tensors that are plain attributes or in lists of these, by name."""
    plain = {
        f"{path}.{name}.{index}": tensor
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, (torch.Tensor, list, tuple)) or name == "_buffers"
        for index, tensor in enumerate(tensors(value))
    }
    return {**module.state_dict(), **plain}


def _with_inputs(built: Built, function: Any) -> Built:
    return replace(built, args=replaced(built.args, function), kwargs=replaced(built.kwargs, function))


def _differentiable(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that takes part in backward, and that the target may write to in place, as an activation."""
    return tensor.detach().requires_grad_().clone() if tensor.is_floating_point() else tensor


def _rounded(built: Built, dtype: torch.dtype) -> Built:
    def back(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype).to(tensor.dtype) if tensor.dtype is torch.float32 else tensor

    if isinstance(built.module, torch.nn.Module):
        with torch.no_grad():
            for parameter in built.module.parameters():
                parameter.copy_(back(parameter.detach()))
    return _with_inputs(built, back)


def _gradients(built: Built) -> list[torch.Tensor]:
    parameters = built.module.parameters() if isinstance(built.module, torch.nn.Module) else ()
    return [p.grad for p in parameters if p.grad is not None]
