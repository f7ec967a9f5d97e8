"""The benchmark of mutants keeps its two halves apart: which libraries they are, and their figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from figures import results  # noqa: E402
from halves import KEPT, project  # noqa: E402
from mutants import summary  # noqa: E402
from mutants.libraries import libraries  # noqa: E402
from mutants.table import Count, Tables  # noqa: E402


def test_kept_libraries_stand_in_no_other_list() -> None:
    others = (ROOT / "benchmarks" / "ecosystem" / "releases.txt").read_text().splitlines()
    known = {project(line.partition("==")[0]) for line in others}
    kept = [library.name for library in libraries().values() if library.half == KEPT]
    assert len(kept) >= 4
    assert not known & {project(name) for name in kept}


def test_the_figures_tell_both_halves_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, learned = Tables(), Tables()
    for tables, found in ((kept, 1), (learned, 4)):
        tables.cells["often"]["fp16"] = Count(hurting=4, found=found)
        tables.cells["seldom"]["bf16"] = Count(hurting=1, found=0, harmless=2)
        tables.mutants = 2
    save = results.save
    monkeypatch.setattr(results, "save", lambda *given, **named: save(*given, **named, folder=tmp_path))
    summary.keep({"learned": learned, "kept": kept}, {"learned": 7, "kept": 5}, named=False)
    [told] = results.load(tmp_path)
    assert told.seen["found, mean of operators"] == "50.0%"
    assert told.first_sight["found, mean of operators"] == "12.5%"
    assert told.first_sight["mutants with a label"] == 5
    assert told.first_sight["by operator"]["often"]["found"] == (1, 4)
    assert told.first_sight["by scenario"]["bf16"]["proven on harmless"] == (0, 2)
