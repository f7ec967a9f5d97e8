"""The halves of libraries and repositories rest on their names alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from halves import HALVES, half, project


@pytest.mark.parametrize("name", ["Owner/My_Model.zoo", "other/my-model-zoo", "my_model_zoo"])
def test_a_repository_and_its_package_are_in_one_half(name: str) -> None:
    assert project(name) == "my-model-zoo"
    assert half(name) == half("my-model-zoo")


def test_both_halves_are_about_as_large() -> None:
    counts = [sum(half(f"package-{n}") == which for n in range(1000)) for which in HALVES]
    assert min(counts) > 420
