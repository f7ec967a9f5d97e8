"""benchmarks/doubts: what a doubt costs and saves, counted on made-up verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.judge.doubts import NO_WEIGHTS, UNKNOWN_ON_A_PATH, VALUES_DECIDE

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from doubts.labelled import Labelled, Shelf, of_readers  # noqa: E402
from doubts.table import decided, lines  # noqa: E402

if TYPE_CHECKING:
    from amplint.finding import Doubt


def labelled(verdict: str, *held: str, package: str = "made_up") -> Labelled:
    return Labelled(package, "AMP302", held, verdict)


LABELLED = [
    labelled("right"),
    labelled("right", "values-decide", package="other"),
    labelled("wrong", "values-decide"),
    labelled("wrong", "values-decide", "no-weights"),
    labelled("arguable", "values-decide", "unknown-on-a-path"),
    labelled("right", "unknown-on-a-path"),
    labelled("not judged", "values-decide", package="third"),
    labelled("not judged", "values-decide", package="fourth"),
]


@pytest.mark.parametrize(
    ("row", "alone"),
    [
        (VALUES_DECIDE, ["right", "wrong", "arguable"]),
        (NO_WEIGHTS, []),
        (UNKNOWN_ON_A_PATH, ["right"]),
    ],
)
def test_a_doubt_decides_where_no_other_one_leaves_as_little(row: Doubt, alone: list[str]) -> None:
    assert [one.verdict for one in decided(row, LABELLED) if one.verdict != "not judged"] == alone


def test_the_table_counts_verdicts_by_package() -> None:
    text = "\n".join(lines(LABELLED))
    assert text.startswith("6 labelled findings, 2 of them told: right 2\n")
    row = f"{'values-decide':24}{'possible':9}     4      3      1      1         1        2         3  supported\n"
    assert row in text
    assert "  costs: other 1\n  saves: made-up 2\n" in text


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "unpacked", tmp_path)
    assert list(of_readers(shelf)) == []
    assert shelf.lacking
