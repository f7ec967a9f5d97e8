"""What calls gave on a real device, recorded as text, and calls that give that again where the CPU gives otherwise."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._calls import Call, Failure, name_of
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amplint.data._calls import Assignment, Outcome

PLAIN = "plain"
Key = tuple[str, str]
"""The region in which a call ran (``plain``, or the dtype of CUDA's autocast), and its operands' dtypes."""


def written(dtypes: Assignment) -> str:
    """Operands' dtypes as text: ``input=float16 tensors*head=float32``."""
    names = {one: one.param + (f"*{one.part}" if one.part else "") for one in dtypes}
    return " ".join(f"{names[one]}={name_of(dtype)}" for one, dtype in dtypes.items())


def said(outcome: Outcome) -> Any:
    """An outcome as JSON has it: a failure as ``!`` and the first line of its error."""
    return f"!{outcome.message}" if isinstance(outcome, Failure) else outcome


def fails(recorded: Any) -> bool:
    """Whether what :func:`said` gave is a failure."""
    return isinstance(recorded, str) and recorded.startswith("!")


def _read(recorded: Any) -> Outcome:
    return Failure(recorded[1:]) if fails(recorded) else recorded


@dataclass(frozen=True, eq=False)
class Recorded(Call):
    """A call that gives what it gave on a device, where that is on record, and else what the CPU gives.

    It runs in any case: what autocast does on the way is told by that.
    """

    given_there: Mapping[Key, Any] = field(default_factory=dict)

    def run(self, dtypes: Assignment) -> Outcome:
        region = name_of(torch.get_autocast_dtype("cuda")) if torch.is_autocast_enabled("cuda") else PLAIN
        key = (region, written(dtypes))
        here = super().run(dtypes)
        return _read(self.given_there[key]) if key in self.given_there else here


def with_record(call: Call, record: Mapping[Key, Any]) -> Recorded:
    """The call, with what it gave on a device."""
    return Recorded(**{one.name: getattr(call, one.name) for one in fields(call)}, given_there=record)
