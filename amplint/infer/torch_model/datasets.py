"""Data sets of tensors, and the loaders that go through them: what training loops get of them.

``TensorDataset`` gives a tuple of one item of each of its tensors, ``DataLoader`` stacks such items again: the dtypes
stay those of the tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.joining import is_none
from amplint.infer.lattice.values import UNKNOWN, Sequence, Tensor, Value
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Hashable

    from amplint.infer.lattice.arguments import Arguments

MODULE = "torch.utils.data."
_COLLATE = 6
"""The place of a loader's ``collate_fn``."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset(Sequence):
    """A data set of tensors, a part of one, or a loader: ``element`` is what it gives whatever the index."""

    @property
    def key(self) -> Hashable:
        return ("dataset", self.element.key)


def construct(name: str, arguments: Arguments) -> Value:
    """What a class or function of :mod:`torch.utils.data` makes: unknown but of tensors."""
    kind, first = name.rpartition(".")[2], arguments.get(0, "dataset")
    if kind == "TensorDataset":
        return _of_tensors(arguments)
    if not isinstance(first, Dataset) or arguments.unknown:
        return UNKNOWN
    if kind == "Subset":
        return first
    if kind == "random_split":
        return Sequence(None, first, mutable=True)
    collate, size = arguments.get(_COLLATE, "collate_fn"), arguments.get(1, "batch_size")
    stacks = (collate is None or is_none(collate)) and not (size is not None and is_none(size))
    return _stacked(first) if kind == "DataLoader" and stacks else UNKNOWN


def _of_tensors(arguments: Arguments) -> Value:
    tensors = arguments.positional
    if arguments.unknown or arguments.rest is not None or not all(isinstance(given, Tensor) for given in tensors):
        return UNKNOWN
    return Dataset(None, Sequence(tuple(given.part for given in tensors if isinstance(given, Tensor))))


def _stacked(dataset: Dataset) -> Value:
    """A loader: in place of each tensor several, as one."""
    parts = dataset.element.items if isinstance(dataset.element, Sequence) else None
    if parts is None:
        return UNKNOWN
    stacked = (replace(part, dim=1) if isinstance(part, Tensor) else UNKNOWN for part in parts)
    return Dataset(None, Sequence(tuple(stacked), mutable=True))
