"""What ``tensor.type()`` gives: a string such as ``"torch.cuda.HalfTensor"``, by which other tensors are cast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True, slots=True, eq=False)
class TensorType(Value):
    """The dtype of ``tensor`` and its memory, by name."""

    tensor: Tensor

    @property
    def key(self) -> Hashable:
        return ("tensor type", self.tensor.key)
