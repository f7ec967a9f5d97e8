"""The libraries from which ``verify_modules.py`` draws: ``verify_pool.txt``, a name on each line, its marks before it.

``large`` stands before a library of about 60 module classes or more, ``seed=S`` before one that a seed has drawn.
"""

from __future__ import annotations

import importlib.metadata
import random
from difflib import SequenceMatcher
from pathlib import Path

POOL = Path(__file__).with_name("verify_pool.txt")
LARGE = "large"


def draw_libraries(pool: Path, count: int, seed: int, *, large: bool = False) -> list[str]:
    """``count`` libraries of the pool that no other seed has drawn, marked there; again those that this one has.

    Only of the large ones where that is asked for.
    """
    lines = pool.read_text(encoding="utf-8").splitlines()
    listed = {words[-1]: words[:-1] for line in lines if (words := line.split()) and not line.startswith("#")}
    mark = f"seed={seed}"
    mine = [name for name, marks in listed.items() if mark in marks]
    if mine:
        return mine
    open_to_all = [name for name, marks in listed.items() if not any(one.startswith("seed=") for one in marks)]
    eligible = sorted(name for name in open_to_all if not large or LARGE in listed[name])
    drawn = sorted(random.Random(seed).sample(eligible, count))
    marked = [f"{mark} {line}" if line.split()[-1:] and line.split()[-1] in drawn else line for line in lines]
    pool.write_text("\n".join(marked) + "\n", encoding="utf-8")
    return drawn


def importable(name: str) -> list[str]:
    """The packages that an installed library provides, the one most like its name first and tests last."""
    wanted = name.replace("-", "_").lower()
    provided = importlib.metadata.packages_distributions()
    found = [
        package for package, names in provided.items() if any(n.replace("-", "_").lower() == wanted for n in names)
    ]
    return sorted(found, key=lambda one: ("test" in one, -SequenceMatcher(None, one.lower(), wanted).ratio()))
