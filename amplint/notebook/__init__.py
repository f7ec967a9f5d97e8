"""Jupyter notebooks: their code cells as one Python program, and what is found and fixed there taken back to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".ipynb"


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.suffix == SUFFIX
