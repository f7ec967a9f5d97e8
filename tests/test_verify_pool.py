"""The draw of libraries for ``benchmarks/verify_modules.py``: by seed, marked, none twice."""

from __future__ import annotations

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from verify_modules import POOL, draw_libraries  # noqa: E402


def test_a_draw_is_marked_and_no_other_seed_draws_it_again(tmp_path: Path) -> None:
    pool = tmp_path / "pool.txt"
    pool.write_text("# a heading\n" + "\n".join(f"library-{letter}" for letter in "abcdefgh") + "\n")
    first = draw_libraries(pool, 3, 7)
    assert len(set(first)) == 3
    assert draw_libraries(pool, 3, 7) == first
    second = draw_libraries(pool, 3, 8)
    assert not set(first) & set(second)
    lines = pool.read_text().splitlines()
    assert lines[0] == "# a heading"
    assert sorted(line for line in lines if line.endswith(" seed=7")) == [f"{name} seed=7" for name in first]


def test_the_pool_is_large_enough_and_names_nothing_twice() -> None:
    names = [line.split()[0] for line in POOL.read_text().splitlines() if line and not line.startswith("#")]
    assert len(names) == len(set(names)) >= 20
