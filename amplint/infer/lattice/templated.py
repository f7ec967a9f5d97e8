"""Strings of which parts are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import Builtin

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True, slots=True, eq=False)
class Template(Builtin):
    """A string with parts that are not known, ``form`` as :mod:`amplint.infer.syntax.templates` writes it."""

    form: str = ""

    @property
    def key(self) -> Hashable:
        return ("template", self.form)
