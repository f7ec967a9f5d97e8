"""What the names of constructor parameters usually mean, and small values that fit together.

The sizes agree with each other: features of 32 in 4 heads of 8, images of 16 in patches and windows of 4, sequences of
16. Their order is the order of trying.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from amplint.config import parse_toml

FEATURES = 32
HEADS = 4
IMAGE = 16
LENGTH = 16
BATCH = 2

DEPTH, VOCABULARY, SIZE, COUNT = "depth", "vocabulary", "size", "count"

_TABLE = parse_toml(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
_NUMBERS: list[tuple[re.Pattern[str], str | None, list[Any]]] = [
    (re.compile(row["pattern"]), row.get("role"), ast.literal_eval(row["values"])) for row in _TABLE["number"]
]

WIDTHS: list[Any] = [FEATURES, 64, 16, 4, 3, 1, [FEATURES] * 4, (FEATURES, FEATURES)]
"""Sizes for a number about which nothing is known."""


def values_for(name: str) -> list[Any]:
    """Values to try for a number-like parameter of this name, best first; [] where the name says nothing."""
    return next((list(values) for pattern, _, values in _NUMBERS if pattern.search(name.lower())), [])


def role_of(name: str) -> str | None:
    """DEPTH, VOCABULARY, SIZE, COUNT, or None: what may be made smaller together."""
    return next((role for pattern, role, _ in _NUMBERS if pattern.search(name.lower())), None)


def words_for(name: str) -> list[str]:
    """Words that a string parameter of this name commonly accepts."""
    rows = (row["words"] for row in _TABLE["word"] if re.search(row["pattern"], name.lower()))
    return list(next(rows, ["default", "same", "linear", ""]))
