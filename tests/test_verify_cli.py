"""``amplint verify`` as people and scripts run it: verdicts, modes, fixes, factories, output and exit status."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Completed, amplint, amplint_in

from amplint.verify.hardware import has_cuda

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]

KEYS = ["target", "scenario", "mode", "device", "run_on", "verdict", "code", "fingerprint", "error", "location"]
LAST_KEYS = ["seconds", "reproduce"]
RAN_KEYS = ["built", "inputs", "variant"]
BASE = ["train", "eval", "eval-no-grad"]
HEAD = "import torch\nfrom torch import nn\n\n\n"


def verify(*arguments: str, cwd: Path) -> Completed:
    """The command on the CPU, in a folder."""
    done = amplint_in(cwd, "verify", *arguments)
    assert "Traceback" not in done.stderr
    return done


def rows_of(*arguments: str, cwd: Path, status: int, fix_check: bool = False) -> list[Row]:
    """The rows of a run on the CPU, with the contract's keys in its order."""
    options = ("--run-on", "cpu", "--output-format", "json", *(["--fix-check"] if fix_check else []))
    done = verify(*arguments, *options, cwd=cwd)
    assert done.status == status, done.stderr
    rows: list[Row] = json.loads(done.stdout)
    middle = ["fix", "largest_error"] if fix_check else []
    for row in rows:
        assert list(row) == [*KEYS, *RAN_KEYS, *middle, *LAST_KEYS]
        assert row["verdict"] == "not-runnable" or (row["built"] and row["inputs"])
        assert row["run_on"] == "cpu"
        assert row["verdict"] in ("confirmed", "clean", "not-reproduced", "not-reached", "not-runnable", "needs-gpu")
        assert row["location"] is None or list(row["location"]) == ["filename", "row"]
        assert row["seconds"] >= 0
    return rows


def write(folder: Path, **files: str) -> Path:
    """Files by dotted name, below a heading that imports torch."""
    for name, text in files.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)
    return folder


def linear(name: str, body: str, *, base: str = "nn.Module", example: str | None = None) -> str:
    """A class with a Linear; ``example`` is what its own ``amplint_example`` returns as the module."""
    text = (
        f"class {name}({base}):\n    def __init__(self, wide: bool = False):\n        super().__init__()\n"
        "        self.wide = wide\n        self.proj = nn.Linear(8, 8)\n\n"
        f"    def forward(self, x):\n        {body}\n\n\n"
    )
    if example is None:
        return text
    method = f"    @staticmethod\n    def amplint_example():\n        return {example}, (torch.randn(2, 8),), {{}}\n"
    return f"{text.rstrip()}\n\n{method}\n\n"


def verdicts(rows: list[Row], target: str) -> dict[tuple[str, str | None], set[str]]:
    """By verdict and code: the scenarios of one target."""
    found: dict[tuple[str, str | None], set[str]] = {}
    for row in rows:
        if row["target"].endswith(f"::{target}"):
            found.setdefault((row["verdict"], row["code"]), set()).add(row["scenario"])
    return found


def test_each_verdict(tmp_path: Path) -> None:
    steps = "steps = torch.arange(1001, 1010).to(x.dtype); return x * (steps[1:] - steps[:-1])"
    branch = "if x.dim() == 17:\n            x = self.proj(x.float())\n        return self.proj(x)"
    root = write(
        tmp_path,
        pkg__in____init__="",
        pkg__in__base="class Base(nn.Module):\n    pass\n",
        pkg__in__upcast="from .base import Base\n\n" + linear("Upcast", "return self.proj(x.float())", base="Base"),
        values=linear("Overflow", "return self.proj(x) * 100_000", example="Overflow()")
        + linear("Steps", steps, example="Steps()")
        + linear("Spectrum", "return torch.fft.rfft(x).abs()", example="Spectrum()"),
        code=linear("Fine", "return self.proj(x)", example="Fine()"),
        quiet=linear("Replaced", "return self.proj(x.float())", example="replaced()")
        + linear("Branch", branch)
        + "def replaced():\n    module = Replaced()\n    module.proj = nn.Identity()\n    return module\n",
        broken="def f(:\n",
    )
    (root / "requirements.txt").write_text("torch==2.13.0\n")  # later ones have a bfloat16 kernel for Spectrum
    rows = rows_of(".", "--scenario", "16-mixed", "--scenario", "fp16,bf16-true", "--isolated", cwd=root, status=1)
    low = {"fp16", "bf16"}
    every = low | {"autocast-fp16"}
    assert verdicts(rows, "Upcast") == {("confirmed", "AMP102"): low, ("clean", None): {"autocast-fp16"}}
    assert verdicts(rows, "Overflow") == {
        ("confirmed", "AMP303"): {"fp16", "autocast-fp16"},
        ("clean", None): {"bf16"},
    }
    assert verdicts(rows, "Steps") == {("confirmed", None): {"bf16"}, ("clean", None): every}
    assert {row["mode"] for row in rows if "Steps" in row["target"] and row["verdict"] == "confirmed"} == {*BASE[1:]}
    assert verdicts(rows, "Fine") == {("clean", None): every}
    assert verdicts(rows, "Replaced") == {("not-reproduced", "AMP102"): low, ("clean", None): {"autocast-fp16"}}
    assert verdicts(rows, "Branch") == {("not-reached", "AMP102"): low, ("clean", None): {"autocast-fp16"}}
    assert verdicts(rows, "Spectrum") == {
        ("needs-gpu", None): {"fp16"},
        ("confirmed", "AMP305"): {"bf16"},
        ("clean", None): {"autocast-fp16"},
    }
    for row in rows:
        assert row["target"].partition("::")[0].startswith(str(root))
        assert (row["fingerprint"] is not None) is (
            row["verdict"].startswith("not-") or row["code"] in ("AMP102", "AMP305")
        )
        assert (row["error"] is not None) is (row["verdict"] in ("confirmed", "needs-gpu"))
        assert row["reproduce"] == (
            f"amplint verify {row['target']} --scenario {row['scenario']} --run-on cpu --isolated"
        )
        if row["verdict"] == "confirmed" and row["code"] is not None:
            assert row["location"]["filename"] == row["target"].partition("::")[0]
    cells = [(row["target"].partition("::")[0], row["scenario"], row["mode"]) for row in rows]
    assert [file for file, _, _ in cells] == sorted(file for file, _, _ in cells)
    per_target = [(row["scenario"], row["mode"]) for row in rows if row["target"].endswith("::Fine")]
    assert per_target == [(scenario, mode) for scenario in ("autocast-fp16", "fp16", "bf16") for mode in BASE]
    listed = json.loads(amplint("check", "--isolated", "--output-format", "json", "--exit-zero", str(root)).stdout)
    known = {finding["fingerprint"] for finding in listed if not finding["code"].startswith("AMP9")}
    assert {row["fingerprint"] for row in rows} - {None} == known


MODELS = """\
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.cache_k = None

    def forward(self, x, attention_mask=None):
        k = self.proj(x)
        if attention_mask is not None:
            assert attention_mask.dtype is torch.long and attention_mask[0, -1] == 0 and attention_mask[1].all()
            k = k * attention_mask[..., None]
        if self.cache_k is not None:
            k = torch.bmm(k, self.cache_k.transpose(1, 2))
        self.cache_k = k.float()
        return k


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, key_padding_mask=None, past=None):
        y = self.proj(x)
        if key_padding_mask is not None:
            assert key_padding_mask.dtype is torch.bool and key_padding_mask[0, -1] and not key_padding_mask[1].any()
            y = y.masked_fill(key_padding_mask[..., None], -1e9)
        if past is not None:
            y = torch.bmm(y, past.transpose(1, 2))
        return y, y.float()

    @staticmethod
    def amplint_example():
        return Encoder(), (torch.randn(2, 6, 4),), {}
"""


def test_each_mode_where_the_target_has_a_use_for_it(tmp_path: Path) -> None:
    example = (
        "from models import Decoder\n\n\ndef amplint_example():\n    return Decoder(), (torch.randn(2, 6, 4),), {}\n"
    )
    root = write(tmp_path, models=MODELS, example=example)
    targets = ("example.py", "models.py::Encoder")
    rows = rows_of(*targets, "--scenario", "fp16", "--scenario", "fsdp-bf16", "--isolated", cwd=root, status=1)
    confirmed = {
        (row["target"].rpartition("::")[2], row["scenario"], row["mode"])
        for row in rows
        if row["verdict"] == "confirmed"
    }
    assert confirmed == {
        ("amplint_example", "fp16", "second-call"),
        ("amplint_example", "fsdp-bf16", "second-call"),
        ("Encoder", "fp16", "eval-mask"),
        ("Encoder", "fp16", "second-call"),
        ("Encoder", "fsdp-bf16", "second-call"),
    }
    for target in ("amplint_example", "Encoder"):
        modes = [row["mode"] for row in rows if row["target"].endswith(target) and row["scenario"] == "fp16"]
        assert list(dict.fromkeys(modes)) == [*BASE, "eval-mask", "second-call"]
    assert {row["location"]["filename"] for row in rows if row["location"]} == {str(root / "models.py")}


FIXABLE = """\
import sys

TABLES = {"w": torch.randn(8, 8, generator=torch.Generator().manual_seed(0))}


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        y = self.proj(x.float())
        y = sys.modules["torch"].mm(y, TABLES["w"])
        return nn.functional.binary_cross_entropy(torch.sigmoid(y * 300), torch.zeros_like(y))
"""

CONFTEST = """\
import pytest
from lib.model import Model


@pytest.fixture(name="size")
def _size():
    return 2


@pytest.fixture
def model(inputs):
    module = Model()
    yield module, (inputs,), {}
    raise AssertionError("torn down when the test ends")
"""

UPPER_CONFTEST = """\
import pytest


@pytest.fixture
def inputs(size):
    return torch.randn(size, 8)
"""


def test_fixes_run_on_a_copy_and_a_factory_sees_them(tmp_path: Path) -> None:
    model = "import os\n\n\n" + linear("Model", "return self.proj(x.float())").replace("wide: bool = False", "wide=os")
    root = write(tmp_path, lib__in____init__="", lib__in__model=model, loss=FIXABLE)
    write(root, tests__in__conftest=UPPER_CONFTEST, tests__in__unit__in__conftest=CONFTEST)
    (root / "amplint.toml").write_text('[factories]\n"lib/model.py::Model" = "tests/unit/conftest.py::model"\n')
    before = contents(root)
    targets, scenarios = ("lib", "loss.py::Loss"), ("--scenario", "bf16", "--scenario", "autocast-fp16")
    rows = rows_of(*targets, *scenarios, "--trace", "page.html", cwd=root, status=1, fix_check=True)
    page = root / "page.html"
    assert "lib/model.py" in page.read_text()
    page.unlink()
    assert contents(root) == before
    effects = {
        (row["target"].rpartition("::")[2], row["scenario"], row["code"], row["fix"])
        for row in rows
        if row["verdict"] == "confirmed"
    }
    assert effects == {
        ("Model", "bf16", "AMP102", "cures"),
        ("Loss", "bf16", "AMP102", "does-not-cure"),
        ("Loss", "autocast-fp16", "AMP304", "changes-numerics"),
    }
    changed = [row["largest_error"] for row in rows if row["fix"] == "changes-numerics"]
    assert min(changed) > 0.1
    assert {row["largest_error"] for row in rows if row["fix"] == "cures"} == {0.0}
    assert {row["mode"] for row in rows if row["target"].endswith("Model")} == {*BASE}
    assert all(row["fix"] is None for row in rows if row["code"] is None)


def test_each_target_has_its_own_configuration(tmp_path: Path) -> None:
    """Files of two folders, each with its scenario and with a factory that its class cannot be built without."""
    needs = linear("Model", "return self.proj(x.float())").replace("wide: bool = False", "engine")
    factory = "from model import Model\n\n\ndef make():\n    return Model(3), torch.randn(2, 8)\n"
    for package, scenario in (("one", "bf16"), ("two", "fp16")):
        folder = write(tmp_path / package, model=needs, make=factory)
        text = f'scenarios = ["{scenario}"]\n[factories]\nModel = "make.py::make"\n'
        (folder / "amplint.toml").write_text(text)
    rows = rows_of("one/model.py", "two/model.py", cwd=tmp_path, status=1)
    assert {row["verdict"] for row in rows} == {"confirmed"}
    shown = {(row["target"].split("/")[-2], row["scenario"]) for row in rows}
    assert shown == {("one", "bf16"), ("two", "fp16")}
    rows = rows_of("one/model.py::Model", "--config", "two/amplint.toml", cwd=tmp_path, status=1)
    assert {row["scenario"] for row in rows} == {"fp16"}
    assert all(f"--config {tmp_path / 'two' / 'amplint.toml'}" in row["reproduce"] for row in rows)
    (tmp_path / "two" / "amplint.toml").write_text("scenarios = 3\n")
    rows = rows_of("one/model.py", "two/model.py", cwd=tmp_path, status=2)
    assert {row["target"].split("/")[-2] for row in rows} == {"one"}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_what_does_not_count_in_check_is_not_run_for(tmp_path: Path) -> None:
    root = write(tmp_path, model=linear("Wide", "return self.proj(x.float())"))
    arguments = ("model.py", "--scenario", "bf16", "--fix-check")

    def concerned(*options: str, status: int) -> list[str]:
        rows = rows_of(*arguments, *options, cwd=root, status=status, fix_check=True)
        return [row["reproduce"] for row in rows if row["code"] is not None]

    assert concerned(status=1)
    kept = concerned("--min-certainty", "proven", "--min-severity", "error", status=1)
    assert all("--min-certainty proven --min-severity error" in command for command in kept)
    assert kept
    (root / "amplint.toml").write_text('per-file-ignores = {"model.py" = ["AMP1"]}\n')
    assert concerned(status=0) == []


def test_the_command_of_a_row_reproduces_it(tmp_path: Path) -> None:
    """From another folder, with a factory that the class cannot be built without, and with the same rows again."""
    needs = linear("Model", "return self.proj(x.float())", example=None).replace("wide: bool = False", "engine")
    factory = "from my_model import Model\n\n\ndef make():\n    return Model(3), torch.randn(2, 8)\n"
    folder = write(tmp_path / "with space", my_model=needs, tests__in__make=factory)
    target = ("my_model.py::Model", "--factory", "tests/make.py::make", "--scenario", "bf16", "--isolated")
    rows = rows_of(*target, "--exit-zero", cwd=folder, status=0)
    assert {row["verdict"] for row in rows} == {"confirmed"}
    (command,) = {row["reproduce"] for row in rows}
    program, name, *arguments = shlex.split(command)
    assert (program, name) == ("amplint", "verify")
    again = verify(*arguments, "--output-format", "json", cwd=tmp_path)
    assert again.status == 1
    assert [without_time(row) for row in json.loads(again.stdout)] == [without_time(row) for row in rows]


def without_time(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != "seconds"}


def test_the_report_for_people(tmp_path: Path) -> None:
    """In a pipe it is plain text, and what could not be built says why, and what to write."""
    needs = "class Needs(nn.Module):\n    def __init__(self, engine):\n        super().__init__()\n"
    needs += "        raise RuntimeError(f'no {engine.name}')\n\n    def forward(self, x):\n        return x\n\n\n"
    root = write(tmp_path, model=needs + linear("Bad", "return self.proj(x.float())"))
    targets = ("model.py::Needs", "model.py::Bad")
    done = verify(*targets, "--isolated", "--run-on", "cpu", "--scenario", "bf16", cwd=root)
    assert done.status == 1
    assert "\x1b" not in done.stdout + done.stderr
    first, second = done.stdout.strip().split("\n\nmodel.py::")
    assert first.startswith("model.py::Needs")
    assert "not-runnable" in first
    assert "    @staticmethod\n      def amplint_example():\n" in first
    assert "Needs(engine=...)" in first
    lines = second.splitlines()
    assert lines[0].startswith("Bad  ")
    assert lines[1].split() == ["confirmed", "AMP102", "upcast-matmul-operand", "at", "model.py:21", "bf16:", *_modes()]
    assert lines[2].strip() == "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16"
    assert lines[3].strip() == "ran Bad() with (bfloat16[2, 15, 8],)"
    assert lines[4].strip() == ("amplint verify model.py::Bad --scenario bf16 --run-on cpu --isolated")
    assert done.stderr == "Ran 2 targets: 1 confirmed.\n"


def test_a_files_example_speaks_for_the_class_that_it_builds_only(tmp_path: Path) -> None:
    """The other classes with findings are built from their signatures, also where the example raises."""
    inner = linear("Inner", "return self.proj(x.float())")
    outer = (
        "class Outer(nn.Module):\n    def __init__(self, scale):\n        super().__init__()\n"
        "        self.inner, self.scale = Inner(), scale\n\n"
        "    def forward(self, x):\n        return self.inner(x)\n\n\n"
    )
    alone = linear("Alone", "return self.proj(x.float())")
    example = "def amplint_example():\n    return Outer(scale='large'), (torch.randn(3, 8),), {}\n"
    root = write(
        tmp_path, model=inner + outer + alone + example, raises=alone + "def amplint_example():\n    return 1/0\n"
    )
    rows = rows_of("model.py", "--scenario", "bf16", "--isolated", cwd=root, status=1)
    found = {(row["target"].rpartition("::")[2], row["verdict"], row["code"]) for row in rows}
    assert found == {(name, "confirmed", "AMP102") for name in ("Outer", "Inner", "Alone")}
    ran = {row["target"].rpartition("::")[2]: (row["built"], row["inputs"]) for row in rows}
    assert ran["Outer"] == ("Outer(scale='large')", "(bfloat16[3, 8],)")
    assert ran["Alone"] == ("Alone()", "(bfloat16[2, 15, 8],)")
    rows = rows_of("raises.py", "--scenario", "bf16", "--isolated", cwd=root, status=1)
    found = {(row["target"].rpartition("::")[2], row["verdict"], row["code"]) for row in rows}
    assert found == {("amplint_example", "not-runnable", None), ("Alone", "confirmed", "AMP102")}


def test_where_nothing_could_be_run_the_status_says_so(tmp_path: Path) -> None:
    needs = "class Needs(nn.Module):\n    def __init__(self, engine):\n        super().__init__()\n"
    needs += "        raise RuntimeError(f'no {engine.name}')\n\n    def forward(self, x):\n        return x\n\n\n"
    root = write(tmp_path, model=needs + linear("Good", "return self.proj(x)"))
    options = ("--isolated", "--run-on", "cpu", "--scenario", "bf16")
    assert verify("model.py::Needs", *options, cwd=root).status == 2
    assert verify("model.py::Needs", *options, "--exit-zero", cwd=root).status == 2
    assert verify("model.py::Needs", "model.py::Good", *options, cwd=root).status == 0


def _modes() -> list[str]:
    return ["train,", "eval,", "eval-no-grad"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one class in ``model.py`` that has nothing to report."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, model=linear("Good", "return self.proj(x)") + "class Other:\n    pass\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("model.py::Godo", "model.py has no class or function Godo; it has Good, Other"),
        ("model.py::Good.forward", "no class or function Good.forward"),
        ("missing.py", "no such file or directory: missing.py"),
        ("missing.py::Good", "no such file or directory: missing.py"),
        (".::Good", ". is not a file: a target is FILE.py::Class"),
        ("broken.py::f", "cannot parse broken.py"),
        ("broken.py", "cannot parse broken.py"),
        ("model.py --scenario bf61", "unknown scenario 'bf61'"),
        ("model.py --run-on cuda --device mps", "it does not go with --device mps"),
        ("model.py --factory model.py::make", "name it as FILE.py::Class"),
        ("model.py::Good model.py::Other --factory model.py::make", "name it as FILE.py::Class"),
        ("model.py::Good --factory make.py::make", "no file make.py"),
        ("model.py::Good --factory model.py", "FILE.py::NAME or package.module:name"),
        ("model.py --select AMP999", "AMP999"),
        ("model.py --torch-version new", "torch version 'new'"),
    ],
)
def test_wrong_usage_is_one_line(folder: Path, arguments: str, said: str) -> None:
    done = amplint("verify", "--isolated", *arguments.split())
    assert done.status == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.startswith("amplint: error: ")
    assert done.stderr.count("\n") == 1


def test_a_run_that_leaves_out_what_decides_the_dtype_says_nothing_against_a_finding(tmp_path: Path) -> None:
    sampler = (
        "class Sampler:\n    def __init__(self, inner: Inner):\n        self.inner = inner\n\n"
        "    def sample(self, x):\n        return self.inner(x.float())\n"
    )
    root = write(tmp_path, model=linear("Inner", "return self.proj(x)") + sampler)
    rows = rows_of("model.py", "--scenario", "bf16-true", "--isolated", "--pedantic", cwd=root, status=0)
    assert verdicts(rows, "Inner") == {("not-reached", "AMP102"): {"bf16"}}


def test_hardware_that_is_not_there_is_wrong_usage(folder: Path) -> None:
    if has_cuda():
        pytest.skip("there is a GPU")
    done = amplint("verify", "model.py", "--run-on", "cuda")
    assert done.status == 2
    assert "--run-on cpu" in done.stderr


def test_nothing_to_run_says_how_to_name_a_class(folder: Path) -> None:
    done = amplint("verify", "--isolated", "model.py")
    assert (done.status, done.stdout) == (0, "")
    assert "nothing to run" in done.stderr
    assert "FILE.py::Class" in done.stderr
    assert json.loads(amplint("verify", "--isolated", "model.py", "--output-format", "json").stdout) == []


WITHOUT_TORCH = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from amplint.cli.main import main
main(["verify", "model.py"])
"""


def test_without_torch_one_line_says_what_to_install(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'amplint: error: verify runs code and needs torch: pip install "amplint[verify]"\n'
