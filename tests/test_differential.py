"""benchmarks/differential: crashes found and missed, and findings that a run refutes, on a made-up package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from differential.command import main  # noqa: E402
from differential.judging import Finding, Judgement, findings  # noqa: E402
from differential.outcome import Crash, Outcome  # noqa: E402

BLOCKS = """\
import torch
from torch import nn


class Clean(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


class Constant(Clean):
    def forward(self, x):
        return self.linear(self.linear(x).float())


class Hidden(Clean):
    def forward(self, x):
        wanted = getattr(torch, "".join(["float", str(2**5)]))
        return self.linear(x) @ torch.eye(4, dtype=wanted)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an importable package with the blocks, and a file that cannot be imported."""
    folder = tmp_path / "made_up_blocks"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "blocks.py").write_text(BLOCKS)
    (folder / "broken.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder.name


def test_classes_of_any_package_run_one_by_one(
    package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    kept = tmp_path / "runs.json"
    assert main(["--library", package, "--runs", str(kept), "--json", str(tmp_path / "judged.json")]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(": ")[2] for line in err.splitlines()] == ["0 crashes", "6 crashes", "6 crashes"]
    first, *rows, last = out.splitlines()
    assert first == f"{package}: 3 of 3 models ran, 1 files of the package"
    assert [row.partition("/train")[0] for row in rows[::2]] == [
        "  missed: blocks.py:22 fp16 eval-no-grad",
        "  missed: blocks.py:22 bf16/bf16-mixed-params eval-no-grad",
        "  AMP102: blocks.py:16 fp16 eval-no-grad",
        "  AMP102: blocks.py:16 bf16/bf16-mixed-params eval-no-grad",
    ]
    assert last.startswith(
        f"{package}: 1 of 2 places that crash have a finding, 0 failures in backward passes; 0 proven errors"
    )
    [judged] = json.loads((tmp_path / "judged.json").read_text())
    assert [one["found"] for one in judged["failures"]] == [[], [], ["AMP102"], ["AMP102"]]
    assert main(["--library", package, "--runs", str(kept)]) == 0
    assert capsys.readouterr().err == "", "what the file has is not run again"


PINNED = """\
import torch
from torch import nn


class Pinned(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4, dtype=torch.float32)

    def forward(self, x: torch.Tensor):
        return self.linear(x)
"""


def test_each_scenario_can_be_asked_for_by_itself(tmp_path: Path) -> None:
    (tmp_path / "pinned.py").write_text(PINNED)
    assert findings(tmp_path, ["pinned.py"], "cuda") == []
    [found] = findings(tmp_path, ["pinned.py"], "cuda", ["fp16", "bf16-mixed-params"])
    assert (found.first, found.scenarios) == (11, ("bf16-mixed-params",))


def test_a_proven_error_on_a_line_that_ran_clean_is_refuted() -> None:
    finding = Finding("a.py", 3, 4, "AMP104", "error", "proven", ("bf16", "fp16"), "operands disagree")
    likely = Finding("a.py", 3, 4, "AMP103", "error", "likely", ("bf16",), "operands disagree")
    ran = Outcome("made_up", "Block", "/made_up", clean={"bf16": {"a.py": [1, 4]}, "fp16": {"a.py": [1, 5]}})
    assert [*Judgement("made_up", [ran], [finding, likely]).refuted] == [(finding, "bf16", ("Block",))]


def test_a_run_without_the_causes_refutes_nothing() -> None:
    causes = (("a.py", 9), ("b.py", 7))
    finding = Finding("a.py", 3, 4, "AMP104", "error", "proven", ("bf16",), "operands disagree", causes)
    alone = Outcome("made_up", "Block", "/made_up", clean={"bf16": {"a.py": [1, 4]}})
    whole = Outcome("made_up", "Model", "/made_up", clean={"bf16": {"a.py": [1, 4, 9], "b.py": [7]}})
    assert [*Judgement("made_up", [alone], [finding]).refuted] == []
    assert [*Judgement("made_up", [alone, whole], [finding]).refuted] == [(finding, "bf16", ("Model",))]


HANDED = {
    "decoder.py": """\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return self.linear(x)
""",
    "model.py": """\
import torch
from torch import nn

from .decoder import Decoder


class Coded(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.decoder = Decoder()

    def forward(self, x: torch.Tensor):
        code = self.encoder(x).sigmoid().mul(255).byte() / 255.0
        return self.decoder(code)
""",
}


def test_what_another_file_is_handed_is_found_at_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "made_up_coders"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, code in HANDED.items():
        (folder / name).write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["--library", folder.name, "--by-scenario"]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if "decoder.py" in row]
    assert [row.partition(" fp16")[0].partition(" bf16")[0] for row in rows] == ["  AMP103: decoder.py:11"] * 2


def test_errors_that_are_not_about_dtypes_are_counted_apart() -> None:
    sizes = Crash(
        "bf16", "train", "RuntimeError: Sizes of tensors must match except in dimension 1", (("a.py", 3),), False
    )
    dtypes = Crash(
        "bf16", "train", "RuntimeError: expected scalar type Float but found BFloat16", (("a.py", 4),), False
    )
    judged = Judgement("made_up", [Outcome("made_up", "Block", "/made_up", crashes=(sizes, dtypes))], [])
    assert [one.place for one in judged.failures] == [("a.py", 4)]
    assert judged.others == [("Block", sizes)]
