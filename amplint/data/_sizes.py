"""Operations that refuse low precision for few rows only: from some size on they go another way, a matrix product say.

``torch.cdist`` with ``p=2`` is such an operation: torch chooses above the device's kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._refusals import converted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.data._calls import Call

ROWS = 128
_REFUSED = (RuntimeError, TypeError, ValueError)


def _enlarged(value: Any) -> Any:
    """An argument with each floating tensor tiled to ``ROWS`` along its last two dimensions of more than one item."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_enlarged, value))
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.dim():
        return value
    first = max(0, value.dim() - 2)
    times = [-(-ROWS // n) if i >= first and n > 1 else 1 for i, n in enumerate(value.shape)]
    tiled = value.repeat(times)
    for dim in range(first, tiled.dim()):
        tiled = tiled.narrow(dim, 0, min(ROWS, tiled.shape[dim]))
    return tiled


def runs(call: Call, dtype: torch.dtype) -> bool:
    """Whether a call runs with its float32 tensors in another dtype."""
    try:
        args = converted(list(call.args), dtype)
        call.function(*args, **{name: converted(value, dtype) for name, value in call.kwargs.items()})
    except _REFUSED:
        return False
    return True


def _large(call: Call) -> Call:
    kwargs = {name: _enlarged(value) for name, value in call.kwargs.items()}
    return replace(call, args=tuple(map(_enlarged, call.args)), kwargs=kwargs)


def _options(calls: Iterable[Call]) -> dict[str, list[float | str]]:
    """The numbers and words that calls pass, by parameter."""
    found: dict[str, list[float | str]] = {}
    for call in calls:
        for name, value in call.named():
            if isinstance(value, (int, float, str)) and value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def runs_large(calls: list[Call], dtypes: list[torch.dtype]) -> dict[str, list[float | str]]:
    """The values of each parameter with which calls run with ``ROWS`` rows in each dtype, though few rows raise.

    Only parameters with other values, with which calls raise at either size. Empty where size does not tell.
    """
    full = [call for call in calls if all(v.numel() for _, v in call.named() if isinstance(v, torch.Tensor))]
    large = [call for call in full if dtypes and all(runs(_large(call), dtype) for dtype in dtypes)]
    if all(runs(call, dtype) for call in large for dtype in dtypes):
        return {}
    passed = _options(large)
    never = _options(call for call in full if call not in large)
    found = {
        name: passed.get(name, []) for name, values in sorted(never.items()) if set(values) - {*passed.get(name, [])}
    }
    return {name: sorted(values, key=str) for name, values in found.items()}
