"""A project that is written down, and the doubts that hold about what is found in one of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.config import Config
from amplint.engine import check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    """Files by their names below a folder; one without text is not written."""
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def doubts(path: Path, code: str, *, named: bool = False) -> list[str]:
    """Those about the one finding of a rule in a file; ``named``: every scenario is asked for by its name."""
    scenario = [s.name for s in DEFAULT_SCENARIOS] if named else []
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=[code], scenario=scenario)
    (found,) = (finding for finding in check_file(path, options).findings if finding.code == code)
    return [held.doubt.name for held in found.doubts]
