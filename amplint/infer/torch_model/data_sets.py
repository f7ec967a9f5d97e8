"""Data sets of tensors, and the batches that a loader makes of them: of the tensors' dtypes, where those lie."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import element_of, is_none
from amplint.infer.lattice.values import UNKNOWN, Sequence, Tensor, Value

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame

SETS = frozenset(("torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"))
LOADERS = frozenset(("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"))


def rows(arguments: Arguments) -> Value:
    """``TensorDataset(*tensors)``: its items are tuples of one item of each tensor."""
    tensors = arguments.positional
    if not tensors or arguments.unknown or not all(isinstance(tensor, Tensor) for tensor in tensors):
        return UNKNOWN
    return Sequence(None, Sequence(tuple(tensor.part for tensor in tensors if isinstance(tensor, Tensor))))


def batches(frame: Frame, arguments: Arguments) -> Value:
    """``DataLoader(items, …)``: lists with a tensor of several items for each that an item has."""
    items = arguments.get(0, "dataset")
    plain = not arguments.unknown and len(arguments.positional) <= 2 and "collate_fn" not in arguments.keywords
    if not isinstance(items, Sequence) or not plain or is_none(arguments.get(1, "batch_size") or UNKNOWN):
        return UNKNOWN
    item = element_of(frame.session, items)
    parts = item.items if isinstance(item, Sequence) else None
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        return UNKNOWN
    return Sequence(None, Sequence(tuple(replace(part, dim=1) for part in parts if isinstance(part, Tensor))))
