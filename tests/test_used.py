"""benchmarks/used.py: which packages and repositories the project's lists name, and that the pool is of others."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))

from halves import project  # noqa: E402
from used import used  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path


def test_names_are_gathered_from_lists_rows_and_programs(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "releases.txt").write_text("# not.this==1.0\nMade_Up==1.0\n\n2026-01-01 drawn-once==2.0\nplain\n")
    rows = [{"repo": "Owner/Some.Repo"}, {"package": "a-package"}, {"library": "a_library"}, {"package": 3}]
    (tmp_path / "deep" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "program.py").write_text("PINNED = 'pinned-one==1.2'\nEQUAL = a == 'b'\n")
    names = {"made-up", "drawn-once", "plain", "some-repo", "a-package", "a-library", "pinned-one"}
    found = used(tmp_path)
    assert found.keys() == names
    assert found["some-repo"] == "deep/rows.jsonl"
    left = used(tmp_path, besides=(tmp_path / "releases.txt",))
    assert left.keys() == names - {"made-up", "drawn-once", "plain"}


def test_the_projects_own_lists_are_read() -> None:
    found = used()
    assert {"transformers", "timm", "trl", "fairseq"} & found.keys() >= {"transformers", "timm", "trl"}
    assert found["alphafold3-pytorch"] == "corpus/cases.jsonl"


def test_the_pool_is_of_packages_that_only_rounds_have_used() -> None:
    folder = BENCHMARKS / "judged"
    names = [line for line in (folder / "pool.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(names) >= 90
    assert names == sorted(set(names), key=str.lower)
    rounds = tuple(path for path in (folder / "pool.txt", folder / "drawn.txt", *folder.glob("fresh/*.jsonl")))
    taken = used(besides=rounds)
    assert not {name: taken[project(name)] for name in names if project(name) in taken}
