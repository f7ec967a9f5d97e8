"""What a failed ``x[index]`` needed: whole numbers, a common shape, positions that exist, a mask of the right shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from amplint.verify.build import names
from amplint.verify.build.spec import Plan, Tensor, replaced, tensors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.spec import Repair
    from amplint.verify.build.trace import Failure, Trace

SUBSCRIPTS = ("__getitem__", "__setitem__")
COST = 0.4


def subscripts(plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    """Plans in which the inputs that are used as positions can be: all of them together, then each alone.

    A vector of positions goes first, one for each of another input's rows second, the shape that it has last.
    """
    target, index = failure.argument(0, "self"), failure.argument(1, "index")
    parts = index if isinstance(index, tuple) else (index,)
    if not isinstance(target, torch.Tensor) or not any(isinstance(part, torch.Tensor) for part in parts):
        return
    inputs = tensors_of(plan)
    sizes: dict[str, int] = {}
    for position, part in enumerate(parts):
        if isinstance(part, torch.Tensor) and part.dtype is not torch.bool and position < target.dim():
            own = (trace.origins(part) - trace.origins(target)) or trace.origins(part)
            for path in own & inputs.keys():
                sizes[path] = min(sizes.get(path, int(target.shape[position])), int(target.shape[position]))
    shapes = dict.fromkeys([(names.LENGTH,), target.shape[:1], *(inputs[path].shape for path in sizes)])
    for rank, shape in enumerate(shapes):
        together = plan
        for path, size in sizes.items():
            together = replaced(together, path, Tensor(tuple(shape), "long", max(size, 1)))
        if sizes:
            yield COST + 0.2 * rank, together
