"""What came of a case: plain data that a child writes and the page is made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["shown", "not shown", "not run"]


@dataclass(frozen=True, slots=True)
class Result:
    """``text`` is the error that the run showed in one line, or why it showed none."""

    name: str
    status: Status
    text: str

    @staticmethod
    def from_json(data: dict[str, Any]) -> Result:
        return Result(**data)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
