"""What ``verify_modules.py`` found out about each drawn library: kept in ``verify_modules.jsonl``, shown in figures.

The first run of a library is at first sight and stays. The last run since, with an amplint that was mended, stands
beside it.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from figures import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from figures.results import Figures, Value

ROWS = Path(__file__).with_name("verify_modules.jsonl")
COMMAND = "python benchmarks/verify_modules.py --draw-libraries 4 --large --seed SEED --figures"
ABOUT = (
    "Random module classes of libraries that a seed drew: how many `amplint verify` builds from nothing but the class, "
    "and runs in every scenario. *confirmed* are classes in which something failed there; each was read, and *wrong* "
    "are those that amplint is to blame for, not the class. First sight is a library's first run, seen its last, with "
    "an amplint that was mended by what the first had shown. Abstract classes are not drawn; the first sight of "
    "seed 4 alone counts 16 of them, as not run."
)


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A run of one library. ``drawn``, ``ran``, ``confirmed``, ``wrong`` count classes; ``wrong`` is None until the
    confirmed ones are read."""

    seed: int
    library: str
    release: str
    amplint: str
    date: str
    seconds: float
    drawn: int
    ran: int
    confirmed: int
    first_sight: bool
    wrong: int | None = None


def load(path: Path = ROWS) -> list[Row]:
    """The rows that are kept."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [Row(**json.loads(line)) for line in text.splitlines()]


def keep(row: Row, path: Path = ROWS) -> None:
    """Keep a run: as the library's first sight if it is the first, else in the place of its last run."""
    rows = load(path)
    first = not any(one.library == row.library for one in rows)
    rows = [one for one in rows if one.first_sight or one.library != row.library]
    _write([*rows, replace(row, first_sight=first)], path)


def read(library: str, wrong: int, path: Path = ROWS) -> bool:
    """Say how many of the confirmed classes of the last run of ``library`` are wrong; False if it never ran."""
    rows = load(path)
    of_library = sorted((one for one in rows if one.library == library), key=lambda one: one.first_sight)
    if of_library:
        _write([replace(one, wrong=wrong) if one is of_library[0] else one for one in rows], path)
    return bool(of_library)


def save_figures(rows: Sequence[Row], folder: Path = results.FOLDER) -> None:
    """Keep the figures for ``docs/figures.md``."""
    seen, first = ([row for row in sorted(rows) if row.first_sight is sight] for sight in (False, True))
    results.save(
        "verify-modules", COMMAND, about=ABOUT, seen=_figures(seen), first_sight=_figures(first), folder=folder
    )


def _figures(rows: Sequence[Row]) -> Figures:
    seeds = sorted({row.seed for row in rows})
    by_seed = {f"seed {seed}": _summed([row for row in rows if row.seed == seed]) for seed in seeds}
    return {"by seed": by_seed, "by library": {f"{row.library} {row.release}": _of_library(row) for row in rows}}


def _summed(rows: Sequence[Row]) -> Mapping[str, Value]:
    return {
        "libraries": len(rows),
        "median of the shares that ran": f"{statistics.median(row.ran / max(row.drawn, 1) for row in rows):.0%}",
        "ran": (sum(row.ran for row in rows), sum(row.drawn for row in rows)),
        "confirmed": sum(row.confirmed for row in rows),
        "wrong": _sum_read(row.wrong for row in rows),
    }


def _of_library(row: Row) -> Mapping[str, Value]:
    return {
        "seed": row.seed,
        "amplint": row.amplint,
        "ran": (row.ran, row.drawn),
        "confirmed": row.confirmed,
        "wrong": _sum_read([row.wrong]),
        "seconds a class, at most": row.seconds,
    }


def _sum_read(wrong: Iterable[int | None]) -> Value:
    counts = list(wrong)
    return "not read" if None in counts else sum(one for one in counts if one is not None)


def _write(rows: Iterable[Row], path: Path) -> None:
    text = "".join(json.dumps(asdict(row)) + "\n" for row in sorted(rows, key=lambda row: (row.library, row.date)))
    path.write_text(text, encoding="utf-8")
