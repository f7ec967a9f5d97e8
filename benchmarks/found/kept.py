"""Results on disk, each beside a digest of its case, so that only what changed is run again."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from found.outcome import Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def load(path: Path, folder: Path) -> dict[str, Result]:
    """The results that showed a case which is still as it was, by name; none where there is no such file."""
    if not path.exists():
        return {}
    rows = [(row.pop("case"), Result.from_json(row)) for row in json.loads(path.read_text(encoding="utf-8"))]
    return {one.name: one for digest, one in rows if one.status == "shown" and digest == _digest(folder, one.name)}


def save(path: Path, folder: Path, results: Mapping[str, Result]) -> None:
    """Keep results of the cases in ``folder``."""
    rows = [{**one.to_json(), "case": _digest(folder, one.name)} for one in results.values()]
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _digest(folder: Path, name: str) -> str | None:
    file = folder / f"{name}.py"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
