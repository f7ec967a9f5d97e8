"""benchmarks/dtype_truth: what is recorded, and how it is compared and traced to its root."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parent.parent / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.append(BENCHMARKS)

from dtype_truth import table  # noqa: E402
from dtype_truth.compare import Inference, compare, infer, tasks, verdict  # noqa: E402
from dtype_truth.listing import Listing  # noqa: E402
from dtype_truth.truth import Case, Recorded, Recording, load, save  # noqa: E402

TOY = """\
import torch
from torch import nn
from torch.nn import functional as F


def double(x):
    return x * 2


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        größe, y = "µ", self.linear(x)
        y += x
        z = (y
             .float()
             .reshape(2, 4))
        s = F.softmax(z, dim=-1)
        m, (a, b) = F.max_pool1d(s, 2), s.split(1)
        many = list(map(torch.relu, [s, m]))
        for t in (y, y.half()):
            t.neg()
        i = z.argmax()
        return double(self.norm(-s)), many, i, a[0:1], b.T, x @ x.T, torch.relu_(x.double())
"""

SCENARIO = "autocast-bf16"


def rows_of(path: Path, root: Path) -> tuple[dict[str, Recorded], int]:
    """What one run of the toy records, by source text."""
    torch = pytest.importorskip("torch")
    from dtype_truth.recorder import Recorder

    spec = importlib.util.spec_from_file_location("dtype_truth_toy", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    toy = module.Toy().eval()
    recorder = Recorder(root)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), recorder:
        toy(torch.ones(2, 4))
    rows, mixed = recorder.rows()
    lines = path.read_text(encoding="utf-8").splitlines()
    return {text_at(lines, row.position): row for row in rows}, mixed


def text_at(lines: list[str], position: tuple[int, int, int, int]) -> str:
    row, column, end_row, end_column = position
    picked = lines[row - 1 : end_row]
    picked[-1] = picked[-1][: end_column - 1]
    picked[0] = picked[0][column - 1 :]
    return "".join(part.strip() for part in picked)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no column positions in code before Python 3.11")
def test_what_torch_gives_is_recorded_at_its_exact_span(tmp_path: Path) -> None:
    path = tmp_path / "package" / "toy.py"
    path.parent.mkdir()
    path.write_text(TOY, encoding="utf-8")
    rows, mixed = rows_of(path, tmp_path / "package")
    assert {text: row.dtype for text, row in rows.items() if row.torch} == {
        "x * 2": "float32",
        "self.linear(x)": "bfloat16",
        "y += x": "bfloat16",
        "y.float()": "float32",
        "y.float().reshape(2, 4)": "float32",
        "F.softmax(z, dim=-1)": "float32",
        "F.max_pool1d(s, 2)": "float32",
        "y.half()": "float16",
        "self.norm(-s)": "float32",
        "-s": "float32",
        "a[0:1]": "float32",
        "b.T": "float32",
        "x.T": "float32",
        "x @ x.T": "bfloat16",
        "x.double()": "float64",
        "torch.relu_(x.double())": "float64",
    }
    assert [text for text, row in rows.items() if not row.torch] == ["double(self.norm(-s))"]
    assert mixed == 1, "t.neg() had two dtypes"
    assert {row.file for row in rows.values()} == {"toy.py"}
    assert rows["self.linear(x)"].count == 1


COMPARED = """\
import torch
from elsewhere import unheard_of


def known(x, flag):
    y = x.float()
    z = y.half() if flag else y
    w = unheard_of(z)
    v = w + 1
    return z.neg(), torch.relu(v)
"""


def position(text: str, source: str = COMPARED) -> tuple[int, int, int, int]:
    """Where the only occurrence of a text is."""
    row, line = next((number, line) for number, line in enumerate(source.splitlines(), 1) if text in line)
    start = line.index(text) + 1
    return row, start, row, start + len(text)


def recording(path: Path, rows: dict[str, str]) -> Recording:
    recorded = tuple(Recorded(path.name, position(text), dtype, True, 1) for text, dtype in rows.items())
    return Recording(Case("lib", "toy", SCENARIO, "cpu"), str(path.parent), path.name, "Toy", 0, None, recorded)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "compared.py"
    path.write_text(COMPARED)
    return path


def test_each_row_gets_its_verdict_by_exact_span(source: Path) -> None:
    made = recording(
        source,
        {"x.float()": "float32", "y.half()": "bfloat16", "z.neg()": "float16", "w + 1": "float32", "half": "float16"},
    )
    compared = list(compare([made], Inference(tasks([made]))))
    verdicts = {text_at(COMPARED.splitlines(), one.truth.position): one.verdict for one in compared}
    assert verdicts == {
        "x.float()": "exact",
        "y.half()": "wrong",
        "z.neg()": "partial",
        "w + 1": "unknown",
        "half": "unknown",
    }
    assert table.count(compared) == {"exact": 1, "wrong": 1, "partial": 1, "unknown": 2, "no row": 1}
    kept = table.figures(compared)["verdicts"]
    assert kept["all"] == {
        "expressions": 5,
        "exact": "20.00%",
        "partial": "20.00%",
        "unknown": "40.00%",
        "wrong": "20.00%",
    }
    assert kept.keys() == {"all", f"{made.case.scenario}/{made.case.device}"}
    total = table.lines([made], compared)[-1]
    assert total.split() == ["both", "5", "20.00%", "20.00%", "40.00%", "20.00%", "1"]


@pytest.mark.parametrize(
    ("inferred", "expected"),
    [
        (("float32",), "exact"),
        (("bfloat16", "float32"), "partial"),
        (("bfloat16",), "wrong"),
        (("bfloat16", "float16"), "wrong"),
        (None, "unknown"),
    ],
)
def test_verdicts_of_float32(inferred: tuple[str, ...] | None, expected: str) -> None:
    assert verdict("float32", inferred) == expected


def test_rows_lead_to_where_the_inference_first_goes_astray(source: Path) -> None:
    made = recording(source, {"w + 1": "float32", "torch.relu(v)": "float32"})
    inference = Inference(tasks([made]))
    assert infer(next(tasks([made])))[position("torch.relu(v)")].dtypes is None
    compared = list(compare([made], inference))
    listed = Listing(str(source.parent), 10).roots(compared, compared, inference)
    assert listed[1:] == [
        "   2  compared.py:8:9  [expression] unheard_of(z)",
        "      behind it 2: 9: w + 1; 10: torch.relu(v)",
        "2 rows, 1 roots",
    ]


def test_recordings_survive_the_disk(source: Path, tmp_path: Path) -> None:
    made = recording(source, {"x.float()": "float32"})
    failed = Recording(Case("lib", "broken", SCENARIO, "cuda"), error="RuntimeError: no")
    save(tmp_path / "truth.json", {made.case: made, failed.case: failed})
    assert load(tmp_path / "truth.json") == {made.case: made, failed.case: failed}


def test_a_file_that_cannot_be_inferred_is_named_and_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def (:\n")
    made = Recording(
        Case("lib", "toy", SCENARIO, "cpu"),
        str(tmp_path),
        path.name,
        rows=(Recorded(path.name, (1, 1, 1, 2), "float32", True, 1),),
    )
    inference = Inference(tasks([made]))
    assert [task.path for task in inference.failures] == [path]
    assert [one.verdict for one in compare([made], inference)] == ["unknown"]
