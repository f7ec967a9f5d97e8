"""Results of several parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import Sequence

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Parts(Sequence):
    """A result of several parts that have names, as that of ``torch.max(x, dim)``."""

    fields: tuple[str, ...] = ()

    def part(self, name: str) -> Value | None:
        """The part of that name."""
        if self.items is None or name not in self.fields:
            return None
        return self.items[self.fields.index(name)]
