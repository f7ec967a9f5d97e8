"""The benchmark of mutants: what each operator does, labels from runs, and the static side on a library of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from mutants.claims import Claim, beyond  # noqa: E402
from mutants.draw import draw  # noqa: E402
from mutants.edits import Edit, apply, changed_rows, minimal, row_after  # noqa: E402
from mutants.libraries import Library  # noqa: E402
from mutants.mutation import found_in  # noqa: E402
from mutants.operators import OPERATORS  # noqa: E402
from mutants.rows import Row, load, ranges, write  # noqa: E402
from mutants.sources import File  # noqa: E402

FORWARD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\ndef f(self, x, y, scaler, optimizer):\n"
)
METHODS = """\
class G(torch.autograd.Function):
    @staticmethod
    {fwd}def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    {bwd}def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad.to(w.dtype) @ w.t(), x.t().to(grad.dtype) @ grad
"""
PAIR = {"fwd": "@torch.amp.custom_fwd\n    ", "bwd": "@torch.amp.custom_bwd\n    "}
REGION = 'with torch.autocast("cuda"):\n    z = self.net(x)\n    loss = z.mean()\nscaler.scale(loss).backward()'

EXAMPLES = [
    ("cast-dropped", "y = x.to(y.dtype)", "y = x"),
    ("cast-dropped", "y = x.to(device=y.device, dtype=y.dtype)", "y = x.to(device=y.device)"),
    ("type-as-dropped", "y = (x + 1).type_as(y)", "y = (x + 1)"),
    ("cast-on-one-operand", "y = x.float() @ y.float()", "y = x.float() @ y"),
    ("cast-on-one-operand", "y = x.to(y.dtype) + y", "y = x + y.to(y.dtype)"),
    ("cast-fixed-float32", "y = x.to(y.dtype)", "y = x.float()"),
    ("cast-fixed-float16", "y = x.type_as(y)", "y = x.half()"),
    ("cast-discarded", "x = x.to(y.dtype)", "x.to(y.dtype)"),
    ("constructor-dtype-forgotten", "y = torch.zeros(3, dtype=x.dtype)", "y = torch.zeros(3)"),
    ("constructor-to-forgotten", "y = torch.zeros(3).to(x)", "y = torch.zeros(3)\n    x.shape"),
    ("constructor-untyped", "y = x.new_zeros(2, 3)", "y = torch.zeros(2, 3, device=x.device)"),
    ("constructor-untyped", "y = torch.ones_like(x)", "y = torch.ones(x.shape, device=x.device)"),
    ("one-hot-untyped", "y = F.one_hot(y, 4).to(x.dtype)", "y = F.one_hot(y, 4).float()"),
    ("buffer-made-attribute", 'self.register_buffer("m", torch.ones(3))', "self.m = torch.ones(3)"),
    (
        "buffer-float32",
        'self.register_buffer("m", torch.ones(3))',
        'self.register_buffer("m", torch.ones(3, dtype=torch.float32))',
    ),
    (
        "parameter-float32",
        "self.w = nn.Parameter(torch.zeros(3))",
        "self.w = nn.Parameter(torch.zeros(3, dtype=torch.float32))",
    ),
    ("layer-float32", "self.n = nn.LayerNorm(3)", "self.n = nn.LayerNorm(3, dtype=torch.float32)"),
    ("reduction-upcast-dropped", "y = x.float().pow(2)", "y = x.pow(2)"),
    ("reduction-upcast-dropped", "y = F.cross_entropy(x.float(), y)", "y = F.cross_entropy(x, y)"),
    ("reduction-dtype-dropped", "y = F.softmax(x, dim=-1, dtype=torch.float32)", "y = F.softmax(x, dim=-1)"),
    ("unsupported-upcast-dropped", "y = torch.linalg.svd(x.float())", "y = torch.linalg.svd(x)"),
    ("upcast-statement-dropped", "x = x.to(torch.float32)", "x = x"),
    ("arithmetic-upcast-dropped", "y = x.float() + y", "y = x + y"),
    ("other-upcast-dropped", "y = self.gate(x.float())", "y = self.gate(x)"),
    ("float-before-product", "y = torch.bmm(x, y)", "y = torch.bmm(x.float(), y)"),
    ("float-before-product", "y = x @ y", "y = x.float() @ y"),
    (
        "attention-operand-upcast",
        "y = F.scaled_dot_product_attention(x, x, y)",
        "y = F.scaled_dot_product_attention(x, x, y.float())",
    ),
    ("return-cast-dropped", "return y.to(self.kind)", "return y"),
    ("mask-limit-literal", "x = x.masked_fill(y, torch.finfo(x.dtype).min)", "x = x.masked_fill(y, -1e9)"),
    ("mask-limit-literal", "x = x.masked_fill(y, -torch.finfo(x.dtype).max)", "x = x.masked_fill(y, -1e9)"),
    ("mask-infinity-literal", 'x = x.masked_fill(y, float("-inf"))', "x = x.masked_fill(y, -1e9)"),
    ("mask-infinity-literal", "x = x.masked_fill(y, -10000.0)", "x = x.masked_fill(y, -1e9)"),
    ("finfo-float32", "m = torch.finfo(x.dtype).max", "m = torch.finfo(torch.float32).max"),
    ("finfo-of-other", "m = torch.finfo(x.dtype).max + y.size(0)", "m = torch.finfo(y.dtype).max + y.size(0)"),
    ("epsilon-tiny", "x = x / (y + 1e-6)", "x = x / (y + 1e-12)"),
    ("epsilon-tiny", "x = y.clamp(min=1e-5)", "x = y.clamp(min=1e-12)"),
    ("epsilon-moved", "x = torch.sqrt(y + 1e-6)", "x = (y.sqrt() + 1e-6)"),
    ("epsilon-moved", "x = (y + 1e-6).rsqrt()", "x = (1 / (y.sqrt() + 1e-6))"),
    ("clamp-bound-wide", "x = y.clamp(-100, 100)", "x = y.clamp(-100, 1e6)"),
    ("limit-of-float32", "x = y.clamp(min=torch.finfo(y.dtype).tiny)", "x = y.clamp(min=1.2e-38)"),
    ("index-write", "x[:, 1:3] = y", "x[:, torch.arange(x.shape[1], device=x.device)[1:3]] = y"),
    ("in-place-operator", "x = x + y", "x += y"),
    ("in-place-method", "x = x.mul(y)", "x = x.mul_(y)"),
    ("out-form", "y = x @ y", "y = torch.matmul(x, y, out=(x).new_empty(0))"),
    ("out-form", "y = torch.mm(x, y)", "y = torch.mm(x, y, out=(x).new_empty(0))"),
    ("arange-in-model-dtype", "t = torch.arange(9, dtype=torch.float32) + x.size(0)", "dtype=x.dtype) + x.size(0)"),
    ("positions-in-model-dtype", "t = torch.arange(x.size(0)).float()", "t = torch.arange(x.size(0)).to(x.dtype)"),
    ("angles-in-model-dtype", "t = (y * x.size(0)).sin()", "t = ((y * x.size(0)).to(x.dtype)).sin()"),
    ("autocast-exit-cast-dropped", 'with torch.autocast("cuda", enabled=False):\n    y = x.float()', "    y = x"),
    ("autocast-region-removed", 'with torch.autocast("cuda", enabled=False):\n    y = x.float()', "if True:"),
    ("autocast-region-added", "y = x @ y", 'with torch.autocast("cuda", enabled=False): y = x @ y'),
    (
        "sigmoid-bce",
        "y = F.binary_cross_entropy_with_logits(x, y)",
        "y = torch.nn.functional.binary_cross_entropy(torch.sigmoid(x), y)",
    ),
    ("log-softmax-split", "y = F.log_softmax(x, dim=-1)", "y = F.softmax(x, dim=-1).log()"),
    ("log-sigmoid-split", "y = F.logsigmoid(x)", "y = torch.sigmoid(x).log()"),
    ("log-sigmoid-split", "y = F.softplus(x)", "y = (1 + torch.exp(x)).log()"),
    ("unscale-dropped", "scaler.unscale_(optimizer)", "pass"),
    ("unscale-doubled", "scaler.unscale_(optimizer)", "scaler.unscale_(optimizer)\n    scaler.unscale_(optimizer)"),
    ("unscale-moved", "scaler.unscale_(optimizer)\nclip(x)", "pass\n    clip(x)\n    scaler.unscale_(optimizer)"),
    ("update-dropped", "scaler.scale(x)\nscaler.update()", "pass"),
    ("update-doubled", "scaler.scale(x)\nscaler.update()", "scaler.update()\n    scaler.update()"),
    (
        "update-moved",
        "scaler.scale(x)\nscaler.step(optimizer)\nscaler.update()",
        "pass\n    scaler.update()\n    scaler.step(optimizer)",
    ),
    ("scaler-step-dropped", "scaler.scale(x)\nscaler.step(optimizer)", "scaler.scale(x)\n    pass"),
    (
        "scaler-step-doubled",
        "scaler.scale(x)\nscaler.step(optimizer)",
        "scaler.step(optimizer)\n    scaler.step(optimizer)",
    ),
    ("plain-step", "scaler.scale(x)\nscaler.step(optimizer)", "optimizer.step()"),
    ("scale-dropped", "scaler.scale(x).backward()", "x.backward()"),
    ("scale-doubled", "scaler.scale(x).backward()", "scaler.scale(scaler.scale(x)).backward()"),
    ("backward-in-region", REGION, "        loss = z.mean()\n        scaler.scale(loss).backward()\n    pass"),
    ("loss-outside-region", REGION, "        pass\n    loss = z.mean()\n"),
    ("forward-outside-region", REGION, '    z = self.net(x)\n    with torch.autocast("cuda"):\n        pass\n'),
    ("region-dropped", REGION, "    if True:\n        z = self.net(x)"),
    ("half-model-in-region", REGION.replace("self.net", "model"), "z = model.half()(x)"),
]
CLASSES = [
    ("float-before-layer", "x = self.p(x.float())"),
    ("custom-fwd-removed", "@staticmethod\n    \n    def forward"),
    ("custom-bwd-removed", "@staticmethod\n    \n    def backward"),
    ("custom-pair-removed", "@staticmethod\n    \n    def forward"),
    ("custom-fwd-float16", '@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)\n    def forward'),
    ("custom-fwd-alone", '@torch.amp.custom_fwd(device_type="cuda")\n    def forward'),
    ("custom-bwd-alone", '@torch.amp.custom_bwd(device_type="cuda")\n    def backward'),
    ("gradient-cast-dropped", "return grad @ w.t()"),
    ("saved-cast-dropped", "x.t() @ grad"),
    ("saved-float32", "ctx.save_for_backward(x, w.float())"),
    ("float-before-backward-product", "grad.to(w.dtype) @ w.t().float()"),
]


def _mutants(source: str, operator: str) -> list[str]:
    data = source.encode()
    return [apply(data, edits).decode() for edits in OPERATORS[operator].find(File(data))]


@pytest.mark.parametrize(
    ("operator", "before", "after"), EXAMPLES, ids=[f"{o}-{i}" for i, (o, *_) in enumerate(EXAMPLES)]
)
def test_operator_does_what_it_says(operator: str, before: str, after: str) -> None:
    body = before + ("\nx.shape" if operator == "constructor-to-forgotten" else "")
    made = _mutants(FORWARD + textwrap.indent(body, "    ") + "\n", operator)
    assert any(after in one for one in made), made
    for one in made:
        compile(one, "mutant", "exec")


@pytest.mark.parametrize(("operator", "after"), CLASSES)
def test_operator_on_a_class(operator: str, after: str) -> None:
    removed = operator.endswith("-removed")
    source = "import torch\nfrom torch import nn\n\n" + METHODS.format(**(PAIR if removed else {"fwd": "", "bwd": ""}))
    source += "\nclass M(nn.Module):\n    def __init__(self):\n        self.p = nn.Linear(3, 3)\n\n"
    source += "    def forward(self, x):\n        x = self.p(x)\n        return x\n"
    made = _mutants(source, operator)
    assert any(after in one for one in made), made
    for one in made:
        compile(one, "mutant", "exec")


def test_every_operator_has_an_example() -> None:
    assert {name for name, *_ in EXAMPLES} | {name for name, *_ in CLASSES} == set(OPERATORS)
    assert len(OPERATORS) >= 20


def test_edits_move_rows() -> None:
    data = b"a\nb\nc\n"
    edits = (Edit(1, 1, 1, 1, "\nx"), Edit(3, 0, 3, 1, "d"))
    assert apply(data, edits) == b"a\nx\nb\nd\n"
    assert [row_after(row, edits) for row in (1, 2, 3)] == [1, 3, 4]
    assert changed_rows(edits) == ((1, 2), (4, 4))
    with pytest.raises(ValueError, match="overlap"):
        apply(data, (Edit(1, 0, 2, 1, ""), Edit(2, 0, 2, 1, "")))


def test_minimal_edits_change_the_same() -> None:
    data = "é = f(a, b)\nreturn x.to(\n    y.dtype)\n".encode()
    edits = (Edit(1, 5, 1, 12, "g(a, b).log()"), Edit(2, 7, 3, 12, "x"))
    small = minimal(data, edits)
    assert apply(data, small) == apply(data, edits) == "é = g(a, b).log()\nreturn x\n".encode()
    assert [edit.text for edit in small] == ["g", ".log()", ""]


def test_what_may_be_passed_over_is_left_out() -> None:
    source = "import torch\n\ndef f(x, y):\n    g = lambda: x.to(y.dtype)\n    return x.to(y.dtype) if g else y\n"
    assert not [one for one in found_in(File(source.encode())) if one.operator == "cast-dropped"]


def _row(operator: str, number: int, label: str) -> Row:
    edits = (Edit(number, 0, number, 1, "x"),)
    return Row("toy", "1.0", "toy/a.py", "", "toy.a.f", "function", operator, edits, {"fp16": {"label": label}})


def test_a_claim_is_new_in_the_scenarios_in_which_it_was_not_made_before() -> None:
    row = replace(_row("cast-dropped", 1, "raises"), edits=(Edit(1, 1, 1, 1, "\n"),))
    before = Claim("AMP104", 4, 4, "error", "possible", ("bf16-mixed-params",), ())
    here = replace(before, first=5, last=5)
    both = replace(here, scenarios=("bf16", "bf16-mixed-params"))
    other = replace(here, code="AMP103")
    assert [*beyond((before,), row, (here, both, other))] == [replace(both, scenarios=("bf16",)), other]


def test_drawn_in_turn_of_those_that_hurt_and_others() -> None:
    rows = [_row("a", number, "raises" if number < 20 else "harmless") for number in range(50)]
    rows += [_row("b", 1, "harmless")]
    drawn = draw(rows, 10)
    assert [row.operator for row in drawn].count("a") == 10
    assert [row.operator for row in drawn].count("b") == 1
    assert sum(row.labels["fp16"]["label"] == "raises" for row in drawn) == 5
    assert drawn == draw(rows[::-1], 10)


@pytest.mark.parametrize("other", [("--again", "3"), ("--label", "toy"), ("--cured", "--half", "kept")])
def test_figures_are_of_what_the_page_shows(other: tuple[str, ...]) -> None:
    done = _command("--figures", *other)
    assert done.returncode == 2
    assert "--figures are" in done.stderr


def test_ranges() -> None:
    assert list(ranges({1, 2, 3, 7, 9, 10})) == [[1, 3], [7, 7], [9, 10]]


TOY = """\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.proj(x)
        weights = torch.softmax(h.float(), dim=-1).to(x.dtype)
        unused = h.to(x.dtype)
        return self.out(weights) + unused * 0


def spread(x):
    large = x.float() * 300
    return (large * large).mean(-1, keepdim=True).sqrt().to(x.dtype)
"""
TRAINING = """\
import torch


def step(setting):
    for inputs, targets in setting.batches:
        with torch.autocast("cuda"):
            loss = setting.loss(setting.model(inputs), targets)
        setting.optimizer.zero_grad()
        scaler = setting.scaler
        scaler.scale(loss).backward()
        if setting.norm is not None:
            scaler.unscale_(setting.optimizer)
            torch.nn.utils.clip_grad_norm_(setting.model.parameters(), setting.norm)
        scaler.step(setting.optimizer)
        scaler.update()
"""
LABEL = """\
import sys
from pathlib import Path
from mutants.labelling import label_library
from mutants.libraries import Library
from mutants.training import labelling
from mutants.training.loops import Loop

def run(setting):
    from toy.training import step
    step(setting)

labelling.LOOPS = (Loop("toy", "toy.training", "step", run),)
label_library(Library("toy", "1.0", "toy"), Path(sys.argv[1]), 60, 120)
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library ``toy``, its labels and its wheel."""
    folder = tmp_path_factory.mktemp("toy")
    package = folder / "source" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "gate.py").write_text(TOY)
    (package / "training.py").write_text(TRAINING)
    with zipfile.ZipFile(folder / "toy-1.0-py3-none-any.whl", "w") as wheel:
        for file in package.iterdir():
            if file.suffix == ".py":
                wheel.write(file, f"toy/{file.name}")
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "benchmarks", folder / "source")))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    labels = folder / "labels" / "learned" / "toy.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LABEL, str(labels)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def _rows(toy: Path, operator: str, text: str = "") -> list[Row]:
    rows, _ = load(toy / "labels" / "learned" / "toy.jsonl")
    return [row for row in rows if row.operator == operator and any(text in edit.text for edit in row.edits)]


def _labels(row: Row) -> dict[str, str]:
    return {scenario: label["label"] for scenario, label in row.labels.items()}


def test_label_of_what_raises(toy: Path) -> None:
    [row] = [row for row in _rows(toy, "float-before-layer") if row.edits[0].row == 12]
    labels = _labels(row)
    assert labels["fp16"] == labels["bf16"] == "raises"
    assert labels["autocast-fp16"] == labels["autocast-bf16"] == "harmless"
    assert row.labels["fp16"]["place"] == ["toy/gate.py", 12]
    assert row.kind == "module"


def test_label_of_what_is_harmless(toy: Path) -> None:
    [row] = [row for row in _rows(toy, "cast-dropped") if row.edits[0].row == 14]
    assert set(_labels(row).values()) == {"harmless"}


def test_label_of_what_overflows(toy: Path) -> None:
    [row] = [row for row in _rows(toy, "arithmetic-upcast-dropped") if row.edits[0].row == 19]
    labels = _labels(row)
    assert labels["fp16"] == "nonfinite"
    assert labels["bf16"] in ("undecided", "inaccurate")
    assert row.kind == "function"


REFRESH = """\
import sys
from pathlib import Path
from mutants import refresh, rerun
from mutants.libraries import Library

refresh.libraries = lambda: {"toy": Library("toy", "1.0", "toy")}
refresh.main(sys.argv[1])
"""


def test_labels_are_made_again(toy: Path, tmp_path: Path) -> None:
    """A wrong label is put right; what the class no longer is goes; what ran clean stays as it was."""
    rows, originals = load(toy / "labels" / "learned" / "toy.jsonl")
    [right] = [row for row in rows if row.operator == "float-before-layer" and row.edits[0].row == 12]
    wrong = replace(right, labels={"fp16": {"label": "harmless"}})
    gone = replace(right, target="toy.gate.Absent", operator="cast-dropped")
    path = tmp_path / Library("toy", "1.0", "toy").half / "toy.jsonl"
    write(path, [wrong, gone, *originals])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "benchmarks", toy / "source")))}
    done = subprocess.run(
        [sys.executable, "-c", REFRESH, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "toy: 1 changed, 1 gone\n", done.stderr
    assert load(path) == ([right], originals)


def test_labels_of_a_training_step(toy: Path) -> None:
    labels = {
        row.operator: _labels(row)["autocast-fp16"]
        for row in load(toy / "labels/learned/toy.jsonl")[0]
        if row.kind == "training"
    }
    assert labels["unscale-dropped"] == labels["unscale-moved"] == "inaccurate"
    assert labels["update-dropped"] == labels["plain-step"] == labels["scale-dropped"] == "raises"
    assert "scaler-step-dropped" not in labels  # no step in float32 either: another program


def test_originals_that_ran_clean_are_recorded(toy: Path) -> None:
    _, originals = load(toy / "labels" / "learned" / "toy.jsonl")
    rows = {row for one in originals for first, last in one.clean.get("fp16", []) for row in range(first, last + 1)}
    assert {12, 13, 14, 15, 19, 20} <= rows


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "mutants"), *arguments], capture_output=True, text=True, check=False
    )


def test_static_side(toy: Path) -> None:
    figures = toy / "figures.json"
    done = _command(
        *("--labels", str(toy / "labels"), "--wheels", str(toy), "--json", str(figures), "--rows", "--jobs", "1")
    )
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(figures.read_text())
    found = data["learned"]["operators"]["float-before-layer"]["fp16"]
    assert found["hurting"] == found["found"] >= 1
    clipped = data["learned"]["operators"]["unscale-dropped"]["autocast-fp16"]
    assert clipped["hurting"] == clipped["found"] == 1, "the clip after the dropped line is what is told"
    assert "toy/gate.py:12" in done.stdout
    assert "kept: 0 mutants" in done.stdout


def test_more_is_told_where_the_scenarios_are_named(toy: Path) -> None:
    def found(*more: str) -> dict[str, Any]:
        figures = toy / "figures.json"
        done = _command("--labels", str(toy / "labels"), "--wheels", str(toy), "--json", str(figures), *more)
        assert done.returncode == 0, done.stderr
        cell: dict[str, Any] = json.loads(figures.read_text())["learned"]["operators"]["layer-float32"]
        return cell["bf16-mixed-params"]

    assert found()["found"] == 0
    named = found("--named")
    assert named["found"] == named["hurting"] > 0


def test_rows_of_the_kept_half_are_never_printed(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "toy.jsonl").write_text((toy / "labels" / "learned" / "toy.jsonl").read_text())
    done = _command("--labels", str(tmp_path), "--wheels", str(toy), "--rows", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "kept: 0 mutants" not in done.stdout
    assert "gate.py" not in done.stdout
