"""What CPU kernels refuse in low precision, and which ATen operation it was that refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from amplint.data._calls import Call


class Reached(TorchDispatchMode):
    """Remembers the innermost operation that raised."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.raised_in: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return func(*args, **(kwargs or {}))
        except Exception:
            self.raised_in = self.raised_in or str(func)
            raise


def converted(value: Any, dtype: torch.dtype) -> Any:
    """An argument with its float32 tensors in another dtype; they keep whether they require a gradient."""
    if isinstance(value, torch.Tensor):
        if value.dtype is not torch.float32:
            return value.detach()
        return value.detach().to(dtype).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(converted(item, dtype) for item in value)
    return value


def refusing_parts(calls: list[Call], dtype: torch.dtype) -> set[str]:
    """ATen operations that raise in calls with their float32 tensors in another dtype, as ``linalg_qr``.

    Empty where a call runs, or fails before it reaches one.
    """
    found: set[str] = set()
    for call in calls:
        with Reached() as reached:
            try:
                args = converted(list(call.args), dtype)
                call.function(*args, **{name: converted(value, dtype) for name, value in call.kwargs.items()})
            except (RuntimeError, TypeError, ValueError):
                if reached.raised_in is None:
                    return set()
                found.add(reached.raised_in.split(".")[1])
            else:
                return set()
    return found


def refuses_itself(call: Call, dtype: torch.dtype) -> bool:
    """Whether a call with its float32 tensors in another dtype raises before it reaches an ATen operation."""
    with Reached() as reached:
        try:
            args = converted(list(call.args), dtype)
            call.function(*args, **{name: converted(value, dtype) for name, value in call.kwargs.items()})
        except (RuntimeError, TypeError, ValueError):
            return reached.raised_in is None
    return False
