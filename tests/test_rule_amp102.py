"""AMP102: upcasts that autocast undoes where nobody enters autocast, or where nothing is left of them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP102")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13), pedantic=True)
HEAD = "import torch\nfrom torch import nn\n\n\n"


def certainties(tmp_path: Path, code: str) -> list[Certainty]:
    source = Source(tmp_path / "module.py", (HEAD + code).encode())
    return [finding.certainty for finding in check_file(source, OPTIONS).findings]


RESULT = """\
class Pool(nn.Module):
    def forward(self, x: torch.Tensor, weights: torch.Tensor):
        dtype = x.dtype
        {statements}
"""


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["return (weights.float() @ x.float()).to(x.dtype)"], Certainty.POSSIBLE),
        (["return torch.matmul(weights.float(), x.float()).squeeze(-1)[0].to(dtype=dtype)"], Certainty.POSSIBLE),
        (["y = weights.float() @ x.float()", "n = x.sum()", "return y.type_as(x), n"], Certainty.POSSIBLE),
        (["return (weights.float() @ x.float()).to(torch.float64)"], Certainty.LIKELY),
        (["y = weights.float() @ x.float()", "z = y.exp()", "return y.type_as(x), z"], Certainty.LIKELY),
        (["return (weights.float() @ x.float()) > 0"], Certainty.POSSIBLE),
        (["y = weights.float() @ x.float()", "near = y > 0", "return y.ne(0), near, y < 1"], Certainty.LIKELY),
    ],
)
def test_a_result_that_keeps_nothing_of_float32(statements: list[str], expected: Certainty, tmp_path: Path) -> None:
    assert certainties(tmp_path, RESULT.format(statements="\n        ".join(statements))) == [expected]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def run(x: torch.Tensor):\n    return x.float() @ x.float()\n", Certainty.POSSIBLE),
        (
            "class Score:\n    def __call__(self, x: torch.Tensor):\n        return x.float() @ x.float()\n",
            Certainty.LIKELY,
        ),
        (
            "def run(x: torch.Tensor):\n    return x.float() @ x.float()\n\n\n"
            "class Pool(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.proj = nn.Linear(4, 4)\n\n"
            "    def forward(self, x: torch.Tensor):\n        return run(self.proj(x))\n",
            Certainty.LIKELY,
        ),
    ],
)
def test_who_runs_a_wasted_upcast(code: str, expected: Certainty, tmp_path: Path) -> None:
    assert certainties(tmp_path, code) == [expected]


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("F.one_hot(labels, 4)", 0),
        ("F.one_hot(labels).transpose(0, 1)", 0),
        ("labels.argmax(-1)", 0),
        ("labels > 0", 0),
        ("labels.exp()", 1),
    ],
)
def test_integers_become_floats_without_being_widened(made: str, count: int, tmp_path: Path) -> None:
    code = f"class Kernel(nn.Module):\n    def forward(self, labels):\n        hot = {made}\n"
    code += "        hot = hot.float()\n        return torch.mm(hot, hot.T)\n"
    assert len(certainties(tmp_path, f"import torch.nn.functional as F\n{code}")) == count


def test_one_hot_takes_and_gives_integers() -> None:
    labels = torch.tensor([0, 3, 1])
    hot = torch.nn.functional.one_hot(labels, 4)
    assert hot.dtype is torch.int64
    low = hot.to(torch.bfloat16)
    assert torch.equal(low @ low.T, (hot @ hot.T).to(low.dtype))
    with pytest.raises(RuntimeError):
        torch.nn.functional.one_hot(labels.float(), 4)


WIDENED = """\
class Attention(nn.Module):
    def __init__(self, wide: bool = True):
        super().__init__()
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)
        self.wide = wide

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        scores, value = self.query(x), self.value(x)
        if self.wide:
            {widened}
        return scores @ {operand}
"""


@pytest.mark.parametrize(
    ("widened", "operand", "raises", "expected"),
    [
        ("scores = scores.float()", "self.value.weight", True, [Certainty.LIKELY]),
        ("scores = scores.softmax(-1, dtype=torch.float32)", "self.value.weight", True, [Certainty.LIKELY]),
        ("scores = scores.float()", "other", True, [Certainty.POSSIBLE]),
        ("scores, value = scores.float(), value.float()", "value", False, []),
        ("scores = scores.float().to(value.dtype)", "value", False, []),
    ],
)
def test_one_path_is_enough_beside_what_is_the_same_on_every_path(
    widened: str, operand: str, raises: bool, expected: list[Certainty], tmp_path: Path
) -> None:
    code = WIDENED.format(widened=widened, operand=operand)
    module: dict[str, Any] = {}
    exec(HEAD + code, module)
    given = torch.ones(8, 8, dtype=torch.bfloat16)
    with pytest.raises(RuntimeError, match="dtype") if raises else nullcontext():
        module["Attention"]().bfloat16()(given, given)
    assert certainties(tmp_path, code) == expected


OPTIMIZER = """\
def rotated(m, q):
    return m.float() @ q.float()


class Rotating(BASE):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(self.turned(p, rotated(p, p)))

    def turned(self, m, q):
        return torch.matmul(m.float(), q.float())
"""


@pytest.mark.parametrize(
    ("base", "expected"), [("torch.optim.Optimizer", 0), ("torch.optim.SGD", 0), ("torch.nn.Module", 2)]
)
def test_an_optimizer_works_outside_of_autocast(base: str, expected: int, tmp_path: Path) -> None:
    assert len(certainties(tmp_path, OPTIMIZER.replace("BASE", base))) == expected


MULTIPLIED = """\
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.weight = nn.Parameter(torch.zeros(8, 8, dtype=torch.float32))

    def forward(self, x: torch.Tensor, mask):
        low = self.layer(x)
        wide = low.float()
        return {product}
"""


@pytest.mark.parametrize(
    ("product", "count"),
    [
        ("low.float() @ mask.float()", 1),
        ("low.float() @ low.softmax(-1)", 1),
        ("wide @ wide.T", 1),
        ("mask.float() @ low", 0),
        ("low.float() @ self.weight", 0),
        ("nn.functional.linear(wide, self.weight)", 0),
        ("self.layer(low.float())", 0),
        ("low.float() @ mask.values", 0),
    ],
)
def test_float32_was_meant_where_all_that_is_multiplied_was_made_so(product: str, count: int, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", (HEAD + MULTIPLIED.format(product=product)).encode())
    under_autocast = tuple(scenario for scenario in DEFAULT_SCENARIOS if scenario.autocast is not None)
    options = Options(RULES, under_autocast, "cuda", (2, 13))
    assert len(check_file(source, options).findings) == count


TABLE = """\
class Rope(nn.Module):
    def __init__(self, frequencies):
        super().__init__()
        self.register_buffer("angles", self.table(frequencies))

    def table(self, frequencies):
        positions = torch.arange(8).float()
        return torch.outer(positions, frequencies.float()) @ frequencies.float().diag()

    def forward(self, x: torch.Tensor):
        return x + {used}


def build(frequencies: torch.Tensor):
    return Rope(frequencies)
"""


@pytest.mark.parametrize(("used", "found"), [("self.angles.to(x.dtype)", False), ("self.table(x)", True)])
def test_a_module_is_built_outside_of_autocast(tmp_path: Path, used: str, found: bool) -> None:
    assert bool(certainties(tmp_path, TABLE.format(used=used))) is found


ENERGY = """\
class Energy(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        basis = torch.eye(4, dtype=self.inner.precision, device=x.device)
        return torch.einsum("ij,ej,i->", basis, {given}, self.scale)
"""


def test_autocast_makes_nothing_differ_from_float64(tmp_path: Path) -> None:
    assert certainties(tmp_path, ENERGY.format(given="x.to(torch.float64)")) == []


class _Held(nn.Identity):
    def __init__(self, precision: torch.dtype) -> None:
        super().__init__()
        self.precision = precision


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_float64_is_refused_under_autocast_as_without(precision: torch.dtype) -> None:
    module: dict[str, Any] = {}
    exec(HEAD + ENERGY.format(given="x.to(torch.float64)"), module)
    energy = module["Energy"](_Held(precision)).to(precision)
    for region in (nullcontext(), torch.autocast("cpu", dtype=torch.bfloat16)):
        with (
            region,
            pytest.raises(RuntimeError, match=r"dtype|scalar type") if precision is torch.float32 else nullcontext(),
        ):
            energy(torch.ones(4, 4, dtype=precision))
