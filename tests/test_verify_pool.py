"""The libraries of ``benchmarks/verify_modules.py``: drawn by seed, marked, none twice; what is kept of their runs."""

from __future__ import annotations

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import pytest  # noqa: E402
import torch  # noqa: E402
import verify_kept as kept  # noqa: E402
import verify_modules  # noqa: E402
from build_modules import drawn_from, is_abstract  # noqa: E402
from figures import results  # noqa: E402
from figures.page import page  # noqa: E402
from verify_pool import LARGE, POOL, draw_libraries  # noqa: E402


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
    assert sorted(line for line in lines if line.startswith("seed=7")) == [f"seed=7 {name}" for name in first]


def test_large_libraries_are_drawn_where_that_is_asked_for(tmp_path: Path) -> None:
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(f"small-{letter}\nlarge big-{letter}" for letter in "abcd") + "\n")
    assert all(name.startswith("big-") for name in draw_libraries(pool, 3, 4, large=True))
    assert sum(line.startswith("seed=4 large big-") for line in pool.read_text().splitlines()) == 3
    with pytest.raises(ValueError, match="larger than population"):
        draw_libraries(pool, 2, 5, large=True)
    assert len(draw_libraries(pool, 5, 5)) == 5


def test_the_pool_is_large_enough_and_names_nothing_twice() -> None:
    lines = [line.split() for line in POOL.read_text().splitlines() if line and not line.startswith("#")]
    assert len({words[-1] for words in lines}) == len(lines) >= 20
    assert all(word == LARGE or word.startswith("seed=") for words in lines for word in words[:-1])


def row(library: str, ran: int, confirmed: int = 0) -> kept.Row:
    return kept.Row(4, library, "1.0", "0.1", "2026-01-01", 60, 60, ran, confirmed, first_sight=False)


def test_a_librarys_first_run_stays_and_its_last_is_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for one in (row("a", 40, 2), row("b", 50), row("a", 50), row("a", 55, 1)):
        kept.keep(one, path)
    assert kept.read("b", 0, path)
    assert kept.read("a", 1, path)
    assert not kept.read("c", 1, path)
    assert sorted((one.library, one.first_sight, one.ran, one.wrong) for one in kept.load(path)) == [
        ("a", False, 55, 1),
        ("a", True, 40, None),
        ("b", True, 50, 0),
    ]
    kept.save_figures(kept.load(path), tmp_path)
    text = page(results.load(tmp_path))
    assert "| seed 4 | 2 | 75% | 90 of 120 (75%) | 2 | not read |" in text
    assert "| seed 4 | 1 | 92% | 55 of 60 (92%) | 1 | 1 |" in text
    assert "| b 1.0 | 4 | 0.1 | 50 of 60 (83%) | 0 | 0 | 60 |" in text


def test_a_reading_is_of_a_library_that_was_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify_modules.py", "--read", "never-run=0"])
    with pytest.raises(SystemExit):
        verify_modules.main()
    assert "never-run was never run" in capsys.readouterr().err


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() > 9:
            raise NotImplementedError
        return x


class Refusing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What subclasses give."""
        raise NotImplementedError(f"{type(self)} has no forward for {x}")


class Silent(torch.nn.Module):
    """Has no forward at all."""


def test_abstract_classes_are_not_drawn() -> None:
    assert [kind for kind in (Plain, Refusing, Silent) if not is_abstract(kind)] == [Plain]
    classes = {f"{number}.{kind.__name__}": kind for number in range(5) for kind in (Plain, Refusing, Silent)}
    drawn, abstract = drawn_from(classes, 4, 1)
    assert len(drawn) == 4
    assert {name[2:] for name in drawn} == {"Plain"}
    assert 0 < abstract <= 10
    assert drawn_from({"a.Silent": Silent}, 4, 1) == ([], 1)
