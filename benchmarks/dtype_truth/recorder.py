"""Records the dtype of every value that torch gives to a library's code, by the expression that gets it."""

from __future__ import annotations

import inspect
import os
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

import amplint
from dtype_truth.positions import position_of
from dtype_truth.truth import Recorded

if TYPE_CHECKING:
    from types import FrameType

    from dtype_truth.truth import Position

_BETWEEN = tuple(
    str(Path(file).resolve().parent) + os.sep for file in (torch.__file__, amplint.__file__, __file__) if file
)
_YIELDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@cache
def _between(filename: str) -> bool:
    """Whether the file belongs to torch, amplint or this benchmark."""
    return os.path.abspath(filename).startswith(_BETWEEN)


class Recorder(TorchFunctionMode):
    """While entered, notes every tensor that a call gives to code below ``root``.

    The function mode makes each call of torch from Python a Python frame, also where torch runs no Python itself. The
    profiler sees what any such frame returns, and to which instruction of which frame: so what a call of a module or
    of a function with a Python body gives is its return value, whatever torch calls inside of it. An expression counts
    as torch's where a call of torch gave a floating-point tensor with no frame of other code in between.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = str(root) + os.sep
        self._dtypes: dict[tuple[str, Position], Counter[torch.dtype]] = {}
        self._torch: set[tuple[str, Position]] = set()

    def __enter__(self) -> Any:
        entered = TorchFunctionMode.__enter__(self)
        sys.setprofile(self._profile)
        return entered

    def __exit__(self, *exception: Any) -> None:
        sys.setprofile(None)
        TorchFunctionMode.__exit__(self, *exception)

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **kwargs or {})
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            caller: FrameType | None = sys._getframe(1)
            while caller is not None and _between(caller.f_code.co_filename):
                caller = caller.f_back
            if caller is not None and (place := self._place(caller)) is not None:
                self._torch.add(place)
        return result

    def _profile(self, frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or frame.f_back is None or not isinstance(value, torch.Tensor):
            return
        if frame.f_code.co_flags & _YIELDS or (place := self._place(frame.f_back)) is None:
            return
        with torch._C.DisableTorchFunction():
            self._dtypes.setdefault(place, Counter())[value.dtype] += 1

    def _place(self, frame: FrameType) -> tuple[str, Position] | None:
        filename = frame.f_code.co_filename
        if not filename.startswith(self._root):
            return None
        position = position_of(frame)
        return None if position is None else (filename, position)

    def rows(self) -> tuple[tuple[Recorded, ...], int]:
        """Floating-point values by file and position, and how many of torch's expressions had several dtypes."""
        rows, mixed = [], 0
        for (file, position), dtypes in sorted(self._dtypes.items(), key=lambda item: item[0]):
            if len(dtypes) > 1:
                mixed += (file, position) in self._torch
                continue
            ((dtype, count),) = dtypes.items()
            if dtype.is_floating_point:
                name = str(dtype).removeprefix("torch.")
                where = file.removeprefix(self._root)
                rows.append(Recorded(where, position, name, (file, position) in self._torch, count))
        return tuple(rows), mixed
