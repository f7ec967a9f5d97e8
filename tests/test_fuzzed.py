"""benchmarks/fuzzed.py --files, on made-up files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import fuzzed

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OLD = "import torch\n\nwith torch.cuda.amp.autocast():\n    x = 1\n"


def test_real_files_are_tried_in_their_places_and_left_as_they_are(tmp_path: Path) -> None:
    files = {"a.py": OLD, "b.py": "x = 1\n", "c.py": "x = (\n", "deep/copy.py": OLD}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = fuzzed.different([tmp_path])
    assert len(paths) == 3
    assert fuzzed.real(paths) == {"fixed": 1, "clean": 1, "no Python": 1}
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_what_goes_wrong_is_told_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(OLD)
    monkeypatch.setattr(fuzzed, "tried", lambda data, options, path, seconds: ("crash", f"KeyError in {seconds} s"))
    assert fuzzed.real([tmp_path / "a.py"]) == {"crash": 1}
    assert capsys.readouterr().out == f"crash: {tmp_path / 'a.py'}: KeyError in {fuzzed.REAL_SECONDS} s\n"
