"""What a benchmark found out about one version of amplint, kept in ``results/NAME.json``.

A benchmark calls :func:`save` where it is asked for ``--figures``; ``docs/figures.md`` is made from the files.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import amplint

FOLDER = Path(__file__).resolve().parent / "results"
_ROOT = Path(__file__).resolve().parents[2]
_PRODUCT = ("amplint", "rules")

Value = int | float | str | tuple[int, int]
"""A number, a text, or ``(part, whole)``, of which the page also says the percentage."""
Table = Mapping[str, Mapping[str, Value]]
"""Values by row and column."""
Figures = Mapping[str, "Value | Table"]
"""By what they say, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one benchmark. ``first_sight``: on code that nobody had looked at to mend amplint; ``seen``: on
    all other. ``about`` says in a sentence what is measured, ``version`` which amplint was, ``command`` how."""

    name: str
    about: str
    version: str
    date: str
    command: str
    seen: dict[str, Any] = field(default_factory=dict)
    first_sight: dict[str, Any] = field(default_factory=dict)


def save(
    name: str,
    command: str,
    *,
    about: str,
    seen: Figures | None = None,
    first_sight: Figures | None = None,
    of: str | None = None,
    folder: Path = FOLDER,
) -> Result:
    """Keep the figures of a benchmark, in the place of those that it had.

    ``command`` is what anybody would type: ``FOLDER`` instead of a folder of this machine. ``of`` is the version of
    amplint that was measured, where it need not be the one at hand. Raises ValueError for a value that the page cannot
    show.
    """
    made = Result(name, about, of or version(), today(), command, _checked(seen or {}), _checked(first_sight or {}))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(made), indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return made


def load(folder: Path = FOLDER) -> list[Result]:
    """All that is kept, by name."""
    files = sorted(folder.glob("*.json"))
    return [_read(json.loads(file.read_text(encoding="utf-8"))) for file in files]


@cache
def version() -> str:
    """The version of amplint and the last commit that changed it; a plus where the work tree differs from that."""
    commit = _git("log", "-1", "--abbrev=10", "--format=%h", "--", *_PRODUCT)
    changed = "+" if commit and _git("status", "--porcelain", "--", *_PRODUCT) else ""
    return f"{amplint.__version__} ({commit}{changed})" if commit else amplint.__version__


def today() -> str:
    """The day, in UTC."""
    return datetime.now(timezone.utc).date().isoformat()


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _checked(figures: Figures) -> dict[str, Any]:
    for name, figure in figures.items():
        rows = [*figure.values()] if isinstance(figure, Mapping) else [{name: figure}]
        for value in (value for row in rows for value in (row.values() if isinstance(row, Mapping) else (None,))):
            if not (_is_share(value) if isinstance(value, tuple) else isinstance(value, (int, float, str))):
                raise ValueError(f"{name}: {value!r} is no figure")
    return dict(figures)


def _is_share(value: tuple[int, ...]) -> bool:
    return len(value) == 2 and 0 <= value[0] <= value[1]


def _read(row: dict[str, Any]) -> Result:
    return Result(**row | {key: _with_shares(row[key]) for key in ("seen", "first_sight")})


def _with_shares(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_shares(one) for key, one in value.items()}
    return tuple(value) if isinstance(value, list) else value
