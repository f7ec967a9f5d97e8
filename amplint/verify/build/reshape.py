"""Other shapes for the inputs of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from amplint.verify.build import names
from amplint.verify.build.inputs import GRID, widths
from amplint.verify.build.spec import Plan, Repair, Tensor, replaced, tensors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from torch import nn

LARGEST = 65_536
"""The largest size of one dimension that a repair asks for."""


def resized(spec: Tensor, have: int, want: int) -> Iterator[Tensor]:
    """``spec`` with its sizes ``have`` made ``want``: all of them at once, then each alone, the last first.

    Where no dimension has that size but two or three together do (a grid that was flattened), the grid is changed.
    """
    if want < 1 or want > LARGEST or have < 1 or have == want:
        return
    at = [dim for dim, size in enumerate(spec.shape) if size == have]
    if len(at) > 1:
        yield _changed(spec, dict.fromkeys(at, want))
    for dim in reversed(at):
        yield _changed(spec, {dim: want})
    if at:
        return
    for width in (2, 3):
        for start in range(1, len(spec.shape) - width + 1):
            dims = range(start, start + width)
            if math.prod(spec.shape[dim] for dim in dims) == have:
                root = round(want ** (1 / width))
                if root**width == want:
                    yield _changed(spec, dict.fromkeys(dims, root))
                yield _changed(spec, {**dict.fromkeys(dims, 1), start: want})
    for dim, size in reversed(list(enumerate(spec.shape))):
        if dim and have and (size * want) % have == 0 and size % have == 0:
            yield _changed(spec, {dim: size * want // have})
        elif dim and size and have % size == 0 and want % (have // size) == 0:
            yield _changed(spec, {dim: want // (have // size)})


def with_rank(module: nn.Module, plan: Plan, path: str, rank: int, tensor: torch.Tensor | None) -> Iterator[Repair]:
    """``plan`` with the input at ``path`` in shapes of another rank.

    ``tensor`` is what was found to have the wrong rank: if its rank differs from the input's, the difference is kept.
    """
    spec = tensors_of(plan).get(path)
    if spec is None:
        return
    if tensor is not None and tensor.dim() != len(spec.shape):
        rank += len(spec.shape) - tensor.dim()
    if rank == len(spec.shape) or not 0 <= rank <= 6:
        return
    for index, shape in enumerate(shapes_of_rank(module, rank)):
        yield 0.5 + 0.2 * index, replaced(plan, path, spec.shaped(shape))


def shapes_of_rank(module: nn.Module, rank: int) -> list[tuple[int, ...]]:
    """Common shapes of a rank for this module's widths."""
    size = widths(module)
    batch, length, side = names.BATCH, names.LENGTH, names.IMAGE
    c, f = size.channels, size.features
    head = max(f // names.HEADS, 1)
    common: dict[int, list[tuple[int, ...]]] = {
        0: [()],
        1: [(batch,), (f,), (length,)],
        2: [(batch, f), (length, f), (batch, length)],
        3: [(batch, length, f), (batch, c, length), (batch, 1, f)],
        4: [
            (batch, c, side, side),
            (batch, GRID, GRID, f),
            (batch, names.HEADS, length, head),
            (batch, length, names.HEADS, head),
        ],
        5: [(batch, c, GRID, side, side), (batch, GRID, GRID, GRID, f), (batch, GRID, c, side, side)],
        6: [(batch, GRID, c, GRID, GRID, GRID)],
    }
    return list(dict.fromkeys(common[rank]))


def with_kind(plan: Plan, path: str, kind: str, high: int) -> Plan:
    """``plan`` with another kind of tensor at ``path``; indices lose the feature dimension."""
    spec = tensors_of(plan)[path]
    shape = spec.shape[:2] if kind == "long" and len(spec.shape) > 2 else spec.shape
    return replaced(plan, path, Tensor(shape, kind, high or spec.high))


def _changed(spec: Tensor, sizes: dict[int, int]) -> Tensor:
    return spec.shaped(sizes.get(dim, size) for dim, size in enumerate(spec.shape))
