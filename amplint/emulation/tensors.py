"""Tensors that live on the CPU and say that they are on the device.

Outermost calls of torch from Python pass through the mode: devices in arguments are mapped to the CPU, and questions
about a tensor's device are answered as on the device.  Inside a function of torch the mode is off, and both sides are
the CPU.  It is on again in what torch calls back: Functions and hooks of the backward pass, checkpoints, hooks of saved
tensors.  Python bodies of custom operators and dispatch modes see the CPU.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device

from amplint.emulation import agreement, running_statistics, sparse_products, unscaling

if TYPE_CHECKING:
    from amplint.emulation.patches import Patches

_CPU = torch.device("cpu")
_Tensor: Any = torch.Tensor

_modes: Callable[[], list[Any]] = _get_current_function_mode_stack
Handler = Callable[[Any, "tuple[Any, ...]", "dict[str, Any]"], Any]


def _on_cpu(tensor: torch.Tensor) -> bool:
    """Meta tensors and the like stay what they are."""
    return tensor.device.type == "cpu"


class Believed(TorchFunctionMode):
    """Makes CPU tensors pass for tensors on ``device``, index 0, in the thread that enters it."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = torch.device(device, 0)
        self._name = re.compile(rf"{device}(?::\d+)?\Z")
        self._handlers = self._special(device)
        self._thread = threading.local()

    def __enter__(self) -> Any:
        self._thread.entered = getattr(self._thread, "entered", 0) + 1
        return TorchFunctionMode.__enter__(self)

    def __exit__(self, *exception: Any) -> None:
        self._thread.entered -= 1
        TorchFunctionMode.__exit__(self, *exception)

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = self._handlers.get(function)
        if handler is not None:
            return handler(function, args, kwargs or {})
        return self._mapped(function, args, kwargs or {})

    def to_cpu(self, value: Any) -> Any:
        """The CPU in the place of the device; anything else unchanged."""
        if isinstance(value, torch.device):
            return _CPU if value.type == self.device.type else value
        return "cpu" if isinstance(value, str) and self._name.match(value) else value

    def _mapped(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            kwargs = {key: self.to_cpu(value) for key, value in kwargs.items()}
            if type(kwargs.get("device")) is int:
                kwargs["device"] = _CPU
        return function(*[self.to_cpu(value) for value in args], **kwargs)

    def _moved(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``Tensor.to`` and ``Module.to``: a plain number is a device; what goes to the host is a copy."""
        at = 1 if function is _Tensor.to else 0
        if len(args) > at and type(args[at]) is int:
            args = (*args[:at], _CPU, *args[at + 1 :])
        elif function is _Tensor.to:
            target = kwargs.get("device", args[1] if len(args) > 1 else None)
            if isinstance(target, (str, torch.device)) and torch.device(target).type == "cpu" and _on_cpu(args[0]):
                kwargs = {**kwargs, "copy": True}
                args = args[:4]
        return self._mapped(function, args, kwargs)

    def _to_host(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``Tensor.cpu`` copies what is on a device."""
        return args[0].to(_CPU, copy=True, **kwargs) if _on_cpu(args[0]) else function(*args, **kwargs)

    def _to_device(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``Tensor.cuda`` and ``Tensor.xpu``."""
        kept = {key: value for key, value in kwargs.items() if key == "memory_format"}
        return args[0].to(_CPU, **kept)

    def _type(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``Tensor.type``: a name that holds the device's, or the type it is given."""
        space = f"torch.{self.device.type}."
        given = [value.replace(space, "torch.") if isinstance(value, str) else value for value in args]
        result = function(*given, **kwargs)
        if isinstance(result, str) and _on_cpu(args[0]):
            return result.replace("torch.", space, 1)
        return result

    def _special(self, device: str) -> dict[Any, Handler]:
        """The functions whose answer or arguments are not plainly mapped."""

        def answer(value: Any) -> Handler:
            return lambda function, args, kwargs: value if _on_cpu(args[0]) else function(*args, **kwargs)

        handlers: dict[Any, Handler] = {
            torch.device: lambda function, args, kwargs: function(*args, **kwargs),
            _Tensor.device.__get__: answer(self.device),
            _Tensor.is_cpu.__get__: answer(False),
            _Tensor.get_device: answer(0),
            _Tensor.cpu: self._to_host,
            _Tensor.to: self._moved,
            torch._C._nn._parse_to: self._moved,
            _Tensor.type: self._type,
            _Tensor.pin_memory: lambda function, args, kwargs: args[0],
            getattr(_Tensor, f"is_{device}").__get__: answer(True),
        }
        if hasattr(torch, "get_device"):
            handlers[torch.get_device] = answer(0)
        if device in ("cuda", "xpu"):
            handlers[getattr(_Tensor, device)] = self._to_device
        if device == "cuda":
            found = {**agreement.checks(), **sparse_products.checks(), **unscaling.checks()}
            handlers.update({function: self._asked(check) for function, check in found.items()})
            handlers.update(running_statistics.handlers(self._mapped))
        return handlers

    def _asked(self, check: agreement.Check) -> Handler:
        """The function after a check of its arguments."""

        def handler(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            check(args, kwargs)
            return self._mapped(function, args, kwargs)

        return handler

    def patch(self, patches: Patches) -> None:
        """Replace what function modes do not see: the default device, callbacks of the engine, generators."""
        patches.set(_device.DeviceContext, "__torch_function__", self._default_device())
        graph = torch.autograd.graph
        engine = self._called_back(graph._engine_run_backward)
        patches.set(torch.autograd, "_engine_run_backward", engine)
        patches.set(graph, "_engine_run_backward", engine)
        patches.set(graph.saved_tensors_hooks, "__init__", self._saved_tensors())
        patches.set(torch, "Generator", self._generator())

    def _default_device(self) -> Any:
        """A default device is applied below all modes, so it maps by itself."""
        before: Any = _device.DeviceContext.__torch_function__
        believed = self

        def constructing(context: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if function in _device._device_constructors() and kwargs.get("device") is None:
                kwargs["device"] = believed.to_cpu(context.device)
            return before(context, function, types, args, kwargs)

        return constructing

    def _called_back(self, function: Any) -> Any:
        """The function with the mode on, in threads that have entered it."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if not getattr(self._thread, "entered", 0) or self in _modes():
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return called

    def _saved_tensors(self) -> Any:
        before: Any = torch.autograd.graph.saved_tensors_hooks.__init__

        def initialise(hooks: Any, pack_hook: Any, unpack_hook: Any) -> None:
            before(hooks, self._called_back(pack_hook), self._called_back(unpack_hook))

        return initialise

    def _generator(self) -> Any:
        real: Any = torch.Generator
        believed = self

        class Kind(type(real)):  # type: ignore[misc]
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, real)

        class Generator(real, metaclass=Kind):  # type: ignore[misc]
            """A generator of the CPU that says that it belongs to the device if it was made for it."""

            def __new__(cls, device: Any = "cpu") -> Any:
                mapped = believed.to_cpu(device)
                made = super().__new__(cls, mapped)
                made._device = believed.device if mapped is not device else torch.device(mapped)
                return made

            @property
            def device(self) -> torch.device:
                own: torch.device = self._device
                return own

        return Generator
