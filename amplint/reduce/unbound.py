"""Names that a text reads and nothing in it binds: what a reduction must not make of code that ran."""

from __future__ import annotations

import builtins
import symtable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUILT_IN = frozenset({*vars(builtins), "__file__", "__name__", "__doc__", "__path__", "__spec__"})


def unbound(text: str) -> frozenset[str]:
    """The names. Raises SyntaxError."""
    top = symtable.symtable(text, "report.py", "exec")
    bound = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    return frozenset(_read_globally(top)) - bound - _BUILT_IN


def _read_globally(table: symtable.SymbolTable) -> Iterator[str]:
    at_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (at_top or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _read_globally(inner)
