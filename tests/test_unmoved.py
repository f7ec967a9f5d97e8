"""What is not reached, since a tensor that was left in the host's memory meets one of the device before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from amplint.engine import Options, check_file
from amplint.infer.torch_model.torch_ops import find_op
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.finding import Finding

OPERANDS = ("AMP103", "AMP104", "AMP105", "AMP110", "AMP306")
RULES = tuple(rule for rule in load_rules() if rule.code in OPERANDS)

CELL = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.ones(4))
        self.inner = nn.Linear(4, 4)
        {attribute}

    def forward(self, x: torch.Tensor):
        before = self.gate * {made}
        state = torch.ones(2, 4, dtype=torch.float32, device=x.device)
        return self.inner(state), before
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in the current folder."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    return folder


def found(text: str, device: str = "cuda") -> list[Finding]:
    path = Path("package/cell.py").absolute()
    return list(check_file(Source(path, text.encode()), Options(RULES, pedantic=True, device=device)).findings)


def doubted(findings: list[Finding]) -> list[bool]:
    """Whether the layer that gets float32 is doubted."""
    return [any(held.doubt.name == "other-memory" for held in f.doubts) for f in findings if f.span.start.row == 15]


def cell(made: str, attribute: str = "pass") -> str:
    return CELL.format(made=made, attribute=attribute)


UNMOVED = (
    "torch.ones(2, 4)",
    "torch.Tensor([1, 2, 3, 4])",
    "torch.FloatTensor([1, 2, 3, 4])",
    "torch.tensor([1.0, 2.0, 3.0, 4.0])",
    "torch.arange(4)",
    "torch.arange(4).float()",
    "torch.ones(2, 4).exp()[:1]",
    "(torch.arange(4) > 2)",
    "torch.distributions.Normal(0, 1).sample((2, 4))",
    "(torch.arange(4) >= torch.arange(4)).float()",
    "torch.sparse.FloatTensor(4, 4).to_dense()",
    "torch.zeros_like(torch.ones(2, 4))",
    "torch.ones(4).new_zeros(4)",
    "x.new_zeros(4).cpu()",
    "torch.zeros(4, device='cpu')",
    "((torch.ones(2, 4),) * 2)[1]",
    "torch.stack([torch.ones(4)] * x.shape[0])",
    "torch.from_numpy(self.gate.detach().cpu().numpy())",
    "(x * torch.ones(2, 4))",
    "torch.cat([x, torch.ones(2, 4)])",
    "torch.einsum('i,pq->pqi', torch.ones(4), x)",
)
MOVED = (
    "torch.tensor(2.0)",
    "torch.ones(())",
    "2.0",
    "torch.ones(2, 4).to(x)",
    "torch.ones(2, 4).to(x.device)",
    "torch.ones(2, 4).to(self.gate)",
    "torch.ones(2, 4).type_as(x)",
    "torch.ones(2, 4).cuda()",
    "torch.ones(2, 4).type('torch.cuda.FloatTensor')",
    "torch.ones(2, 4, device=x.device)",
    "torch.ones(2, 4, device=x.device if x.is_cuda else None)",
    "torch.cuda.FloatTensor(2, 4)",
    "torch.zeros_like(x)",
    "x.new_zeros(4)",
    "self.inner.weight.new_zeros(4)",
    "self.gate[torch.arange(4)]",
    "(torch.arange(4, device=x.device) > 2)",
    "(x > torch.tensor(0.5))",
    "x[torch.arange(2)]",
    "x",
)


@pytest.mark.parametrize("made", UNMOVED)
def test_behind_what_lies_on_the_host_nothing_is_reached(made: str) -> None:
    assert doubted(found(cell(made))) == [True]
    assert doubted(found(cell(made), device="cpu")) == [False]


@pytest.mark.parametrize(
    ("pattern", "behind"), [("'d -> b d', b=2", True), ("'(b d) -> b d', b=2", True), ("'d ->'", False)]
)
def test_shaping_leaves_a_tensor_where_it_lies(pattern: str, behind: bool) -> None:
    shaping = cell(f"einops.reduce(torch.ones(4), {pattern})").replace("import torch\n", "import torch, einops\n", 1)
    assert doubted(found(shaping)) == [behind]


def test_of_a_file_of_no_package_nothing_is_concluded(package: Path) -> None:
    (package / "__init__.py").unlink()
    assert doubted(found(cell("torch.ones(2, 4)"))) == [False]


@pytest.mark.parametrize("made", MOVED)
def test_what_is_moved_or_has_no_dimensions_is_taken(made: str) -> None:
    assert doubted(found(cell(made))) == [False]


def faked(text: str) -> None:
    """Run a module on CUDA, in float32, as fake tensors do."""
    names: dict[str, Callable[..., torch.nn.Module]] = {}
    exec(text, names)
    with FakeTensorMode(), torch.no_grad():
        module = names["Cell"]()
        for held in module.modules():
            for name, tensor in [*held.named_parameters(recurse=False), *held.named_buffers(recurse=False)]:
                owner = held._parameters if isinstance(tensor, torch.nn.Parameter) else held._buffers
                owner[name] = torch.nn.Parameter(torch.empty(tensor.shape, device="cuda"))
        module(torch.empty(2, 4, device="cuda"))


@pytest.mark.parametrize("made", [made for made in UNMOVED if "new_zeros" not in made and "numpy" not in made])
def test_torch_takes_no_two_memories(made: str) -> None:
    with pytest.raises(RuntimeError, match="device"):
        faked(cell(made))


@pytest.mark.parametrize("made", ["torch.tensor(2.0)", "torch.ones(())", "torch.ones(2, 4).to(x)", "x.new_zeros(4)"])
def test_torch_takes_what_is_moved(made: str) -> None:
    faked(cell(made))


@pytest.mark.parametrize(
    ("attribute", "behind"),
    [
        ("self.table = torch.ones(4)", True),
        ("self.table = torch.ones(4)[None, :]", True),
        ("self.register_buffer('table', torch.ones(4))", False),
        ("self.table = nn.Parameter(torch.ones(4))", False),
        ("self.table = torch.ones(4, device=device)", False),
    ],
)
def test_plain_attributes_stay_where_they_were_made(attribute: str, behind: bool) -> None:
    text = cell("self.table", attribute).replace("def __init__(self)", "def __init__(self, device)")
    assert doubted(found(text)) == [behind]


@pytest.mark.parametrize(
    ("made", "more", "behind"),
    [
        ("Normal(0, 1)", "", True),
        ("Normal(0, 1)", "; self.noise.loc = self.noise.loc.cuda()", False),
        ("Uniform(0, 1)", "; self.noise.low, self.noise.high = self.noise.low.cuda(), self.noise.high.cuda()", False),
        ("Normal(0, 1)", "; self.mean = 0", True),
    ],
)
def test_a_distribution_of_numbers_may_be_moved(made: str, more: str, behind: bool) -> None:
    text = cell("self.noise.sample((2, 4))", f"self.noise = torch.distributions.{made}{more}")
    assert doubted(found(text)) == [behind]


def test_what_another_method_sets_may_be_moved() -> None:
    moved = "\n    def place(self, device):\n        self.table = self.table.to(device)\n"
    assert doubted(found(cell("self.table", "self.table = torch.ones(4)") + moved)) == [False]


CLASH = """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", 1.0 / 10000 ** torch.linspace(0, 1, 16))
        self.inner = nn.Linear(4, 4)

    def angles(self, length: int):
        return torch.einsum("i,j->ij", torch.arange(length).float(){moved}, self.rates).cos()

    def start(self, length: int):
        return self.inner(torch.zeros(length, 4){moved})

    def write(self, x: torch.Tensor, index: torch.Tensor):
        out = torch.zeros(8, 4){moved}
        out[index.long()] = self.inner(x)
        return out
"""


def test_where_memories_meet_nothing_is_told() -> None:
    assert [f.code for f in found(CLASH.format(moved="")) if f.certainty.value != "possible"] == []
    moved = {f.code: f.scenarios for f in found(CLASH.format(moved=".to(self.rates.device)"))}
    assert moved["AMP105"] == ("autocast-fp16", "autocast-bf16")
    assert {*moved["AMP306"]} >= {"autocast-fp16", "autocast-bf16"}
    assert {*moved["AMP103"]} >= {"fp16", "bf16"}


LOOP = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, state, x):
        return self.inner(state) + x


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x: torch.Tensor):
        state = torch.zeros(2, 4{moved})
        for _ in range(4):
            state = self.cell(state, x)
        return state
"""


@pytest.mark.parametrize(("moved", "told"), [("", False), (", device=x.device", True)])
def test_a_loop_does_not_get_past_its_first_call(moved: str, told: bool) -> None:
    assert any(f.certainty.value != "possible" for f in found(LOOP.format(moved=moved))) is told


@pytest.mark.parametrize(
    ("setting", "lifted"),
    [
        ("import torch\ntorch.set_default_device('cuda')\n", True),
        ("from torch import set_default_tensor_type as use\nuse('torch.cuda.FloatTensor')\n", True),
        ("import torch\ndef build(device):\n    with torch.device(device):\n        pass\n", True),
        ("import torch\ndef build():\n    with torch.device('meta'):\n        pass\n", False),
        ("import torch\ndef build(device):\n    with torch.cuda.device(device):\n        pass\n", False),
        ("import torch\n# torch.set_default_device('cuda')\n", False),
        ("def set_default_device(device): ...\nset_default_device('cuda')\n", False),
    ],
)
def test_a_default_device_lifts_it(setting: str, lifted: bool, package: Path) -> None:
    (package / "run.py").write_text(setting)
    (package / "cell.py").write_text(cell("torch.ones(2, 4)"))
    result = check_file(package / "cell.py", Options(RULES, pedantic=True))
    assert doubted(list(result.findings)) == [not lifted]


@pytest.mark.parametrize(
    ("name", "together"),
    [
        ("torch.mul", ("input", "other")),
        ("torch.cat", ("tensors",)),
        ("torch.einsum", ("operands",)),
        ("torch.nn.functional.embedding", ("input", "weight")),
        ("torch.Tensor.masked_fill", ("self", "mask")),
        ("torch.Tensor.expand_as", ()),
        ("torch.Tensor.copy_", ()),
    ],
)
def test_the_table_says_what_lies_together(name: str, together: tuple[str, ...]) -> None:
    op = find_op(name)
    assert op is not None
    assert op.together == together
