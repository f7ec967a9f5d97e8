"""Notebooks for tests: written as Jupyter writes them, or as other tools do."""

from __future__ import annotations

import json
from typing import Any


def markdown(text: str) -> dict[str, Any]:
    """A markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(True)}


def code(text: str, *, as_list: bool = True, **metadata: Any) -> dict[str, Any]:
    """A code cell that was run: it has a count, an output and metadata."""
    output = {"name": "stdout", "output_type": "stream", "text": ["é ☃ done\n"]}
    source = text.splitlines(True) if as_list else text
    head = {"cell_type": "code", "execution_count": 3, "metadata": {"tags": ["ü"], **metadata}}
    return {**head, "outputs": [output], "source": source}


def notebook(*cells: str | dict[str, Any], metadata: dict[str, Any] | None = None, **style: Any) -> str:
    """A notebook of format 4; texts are code cells, and ``style`` goes to :func:`json.dumps`."""
    made = [code(cell) if isinstance(cell, str) else cell for cell in cells]
    language = {"language_info": {"name": "python"}} if metadata is None else metadata
    top = {"cells": made, "metadata": language, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(top, **{"indent": 1, "ensure_ascii": False, **style}) + "\n"


def sources(text: str) -> list[str]:
    """The sources of all cells of a notebook."""
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
