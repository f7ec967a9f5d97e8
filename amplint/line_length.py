"""How long a project's formatter lets lines be: what ruff or Black is told in the nearest file that configures one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from amplint import contents
from amplint.config import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT = 88
"""Of both formatters, where their configuration gives no length."""
_RUFF = ("ruff.toml", ".ruff.toml")


def line_length(path: Path) -> int | None:
    """The longest line of a file, in characters; None where no formatter is configured at or above it."""
    return _in_folder(path.parent, contents.age())


@lru_cache(maxsize=1024)
def _in_folder(folder: Path, age: int) -> int | None:
    for name in _RUFF:
        table = _read(folder / name)
        if table is not None:
            return _length(table)
    tools = (_read(folder / "pyproject.toml") or {}).get("tool")
    for name in ("ruff", "black"):
        table = tools.get(name) if isinstance(tools, dict) else None
        if isinstance(table, dict):
            return _length(table)
    return _in_folder(folder.parent, age) if folder.parent != folder else None


def _read(path: Path) -> dict[str, Any] | None:
    """None for a file that is not there, or that its own tool will complain about."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _length(table: dict[str, Any]) -> int:
    found = table.get("line-length", table.get("line_length"))
    return found if type(found) is int and found > 0 else DEFAULT
