"""A setting as amplint sees it: a call of a framework's constructor, or the part of a data file that stands for one."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.preflight.document import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amplint.preflight.problem import Place


@dataclass(frozen=True, slots=True)
class Dtype:
    """``torch.float16`` and the like, by torch's own name of the dtype."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A local variable whose value is not a constant: its name, unique in its scope."""

    name: str


@dataclass(frozen=True, slots=True)
class Value:
    """An argument: a str, int, float, bool, None, Dtype, Variable, or UNKNOWN; and where it is written."""

    value: object
    place: Place
    shown: str

    @property
    def known(self) -> bool:
        return self.value is not UNKNOWN and not isinstance(self.value, Variable)


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    ``name`` is the qualified name of what is called, such as ``transformers.TrainingArguments``. ``values`` has every
    argument by keyword, nested settings with dots (``fp16.enabled``). ``complete`` is False where more may come from
    outside (``**kwargs``) or later statements. ``conditional`` is True where the call may not happen. ``bound_to`` is
    the variable that holds the result, None where there is none or it has other values too. ``imported_once`` is False
    where a fallback import may give the name another meaning. ``in_document`` is True for what a data file or a dict
    says.
    """

    name: str
    shown: str
    place: Place
    values: Mapping[str, Value] = field(default_factory=dict)
    complete: bool = True
    conditional: bool = False
    bound_to: str | None = None
    imported_once: bool = True
    in_document: bool = False

    def get(self, key: str) -> object:
        """The value of an argument; None where it is not given, UNKNOWN where it is not known."""
        value = self.values.get(key)
        if value is None:
            return None if self.complete else UNKNOWN
        return value.value if value.known else UNKNOWN

    def is_true(self, key: str) -> bool:
        return self.get(key) is True

    def at(self, key: str) -> Place:
        """Where an argument is written; the call itself where it is not."""
        value = self.values.get(key)
        return value.place if value is not None else self.place

    def spelled(self, *keys: str) -> str:
        """``TrainingArguments(fp16=True)``: the call with some of its arguments, as a message names it."""
        shown = ", ".join(self.values[key].shown for key in keys if key in self.values)
        return self.shown.format(shown)
