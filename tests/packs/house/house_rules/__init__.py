"""The rules of a house that trains in bfloat16."""

from __future__ import annotations

from house_rules.house101_float16_cast import Float16Cast


def all_rules() -> list[Float16Cast]:
    return [Float16Cast()]
