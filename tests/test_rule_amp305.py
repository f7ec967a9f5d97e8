"""AMP305: where autocast may be on, which sizes cuFFT transforms, and what numpy gets of a device."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from amplint.config import Config
from amplint.engine import Options, check_file
from amplint.finding import Applicability, Certainty
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.judging import judging_options
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP305")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13), pedantic=True)
AUTOCAST = Options(RULES, tuple(s for s in DEFAULT_SCENARIOS if s.autocast), "cuda", (2, 13), pedantic=True)
HALF = Options(RULES, tuple(s for s in DEFAULT_SCENARIOS if not s.autocast), "cuda", (2, 13), pedantic=True)


OBJECT = """\
import torch
from torch import nn


class Normalise{base}:
    def __call__(self, points: torch.Tensor):
        points = points.float()
        return torch.linalg.svd(points @ points.mT)
"""


@pytest.mark.parametrize(("base", "certainty"), [("", Certainty.POSSIBLE), ("(nn.Module)", Certainty.PROVEN)])
def test_methods_of_other_objects_run_outside_autocast(base: str, certainty: Certainty, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", OBJECT.format(base=base).encode())
    (finding,) = check_file(source, OPTIONS).findings
    assert finding.certainty is certainty


BESIDE = """\
import torch
from torch import nn


def align(a: torch.Tensor, b: torch.Tensor):
    return torch.linalg.svd(a.mT @ b)


class Aligned(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor):
        return {forward}

    def inspect(self, a: torch.Tensor, b: torch.Tensor):
        return {inspect}
"""


@pytest.mark.parametrize(
    ("forward", "inspect", "certainty"),
    [("align(a, b)", "a", Certainty.PROVEN), ("a", "align(a, b)", Certainty.POSSIBLE), ("a", "a", Certainty.POSSIBLE)],
)
def test_what_no_forward_leads_to_runs_outside_autocast(
    forward: str, inspect: str, certainty: Certainty, tmp_path: Path
) -> None:
    source = Source(tmp_path / "module.py", BESIDE.format(forward=forward, inspect=inspect).encode())
    (finding,) = check_file(source, AUTOCAST).findings
    assert finding.certainty is certainty


TRANSFORM = """\
import torch
from torch import nn


class Spectra(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, points=1200):
        return {transformed}
"""


@pytest.mark.parametrize(
    ("transformed", "scenarios"),
    [
        ("torch.stft(self.proj(x), self.size, return_complex=True)", ("bf16", "bf16-mixed-params")),
        ("self.proj(x).stft(n_fft=1024, return_complex=True)", ("bf16", "bf16-mixed-params")),
        ("torch.stft(self.proj(x), 1200, return_complex=True)", ("fp16", "bf16", "bf16-mixed-params")),
        ("torch.stft(self.proj(x), points, return_complex=True)", ("fp16", "bf16", "bf16-mixed-params")),
        ("torch.fft.rfft(self.proj(x))", ("bf16", "bf16-mixed-params")),
        ("torch.fft.rfft(self.proj(x), n=256)", ("bf16", "bf16-mixed-params")),
        ("torch.fft.irfft(self.proj(x), n=100)", ("fp16", "bf16", "bf16-mixed-params")),
    ],
)
def test_float16_is_transformed_where_the_size_is_a_power_of_two(transformed: str, scenarios: tuple[str, ...]) -> None:
    source = Source(Path("/project/spectra.py"), TRANSFORM.format(transformed=transformed).encode())
    (finding,) = check_file(source, HALF).findings
    assert finding.scenarios == scenarios


ARRAY = """\
import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, where):
        scores = a @ b
        return {array}
"""


@pytest.mark.parametrize(
    ("array", "count"),
    [
        ("scores.numpy()", 0),
        ("scores.detach().numpy()", 0),
        ("scores.to(where).numpy()", 0),
        ("scores.cpu().numpy()", 1),
        ("scores.detach().to('cpu')[0].numpy()", 1),
        ("scores.to(device=torch.device('cpu')).numpy()", 1),
        ("scores.numpy(force=True)", 1),
    ],
)
def test_numpy_of_what_lies_on_the_device_raises_in_every_dtype(array: str, count: int) -> None:
    source = Source(Path("/project/scores.py"), ARRAY.format(array=array).encode())
    assert [f.scenarios for f in check_file(source, AUTOCAST).findings] == [("autocast-bf16",)] * count


TWICE = """\
from torch import nn


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 4)

    def forward(self, x, where):
        h = self.proj.weight.detach().cpu()
        first = {first}
        return first, h.numpy()
"""


@pytest.mark.parametrize(
    ("first", "rows"),
    [("h.numpy()", [11]), ("h.numpy(force=True)", [11]), ("h if where else h.numpy()", [11, 12]), ("h.float()", [12])],
)
def test_behind_numpy_of_bfloat16_nothing_is_reached(first: str, rows: list[int]) -> None:
    source = Source(Path("/project/twice.py"), TWICE.format(first=first).encode())
    found = check_file(source, replace(HALF, pedantic=False)).findings
    assert [finding.span.start.row for finding in found] == rows


NORM = """\
import torch
from torch import nn


class Contraction(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, x: torch.Tensor):
        return x @ self.weight / {norm}
"""


@pytest.mark.parametrize(
    ("norm", "refused"),
    [
        ("torch.linalg.matrix_norm(self.weight, ord=2)", True),
        ("torch.linalg.matrix_norm(self.weight, -2)", True),
        ("torch.linalg.matrix_norm(self.weight, 2, dtype=torch.float32)", True),
        ("torch.linalg.norm(self.weight, 'nuc')", True),
        ("torch.norm(self.weight, p='nuc')", True),
        ("self.weight.norm('nuc')", True),
        ("torch.linalg.matrix_norm(self.weight)", False),
        ("torch.linalg.matrix_norm(self.weight, 1)", False),
        ("torch.linalg.matrix_norm(self.weight.float(), ord=2).to(x.dtype)", False),
        ("torch.linalg.norm(self.weight[0], 2)", False),
    ],
)
def test_norms_that_factorise_have_no_kernel(norm: str, refused: bool) -> None:
    code = NORM.format(norm=norm)
    found = check_file(Source(Path("/project/norm.py"), code.encode()), replace(OPTIONS, pedantic=False)).findings
    assert [f.scenarios for f in found] == [("fp16", "bf16", "bf16-mixed-params")] * refused
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "norm.py", "exec"), namespace)
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(RuntimeError, match="Low precision") if refused else nullcontext():
            namespace["Contraction"]().to(dtype)(torch.ones(4, dtype=dtype))


SOLVED = """\
import torch
from torch import nn


class Solve(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, x: torch.Tensor):
        wide = torch.eye(4, device=x.device)
        return torch.linalg.solve_triangular({first}, {second}, upper=False)
"""


@pytest.mark.parametrize(
    ("first", "second", "refused"), [("self.weight", "x", True), ("self.weight", "wide", True), ("wide", "x", False)]
)
def test_a_kernel_is_that_of_the_operand_that_decides_the_dtype(first: str, second: str, refused: bool) -> None:
    code = SOLVED.format(first=first, second=second)
    found = check_file(Source(Path("/project/solve.py"), code.encode()), replace(OPTIONS, pedantic=False)).findings
    assert [f.scenarios for f in found] == [("fp16", "bf16", "bf16-mixed-params")] * refused
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "solve.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="not implemented") if refused else nullcontext():
        namespace["Solve"]().half()(torch.ones(4, 4).half())


CANVAS = """\
import torch
from torch import nn


def fitted(image, matrix):
    return image @ torch.linalg.inv(matrix)


class Canvas(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("matrix", torch.eye(4))
        {constructor}

    def reset(self, image):
        {reset}
"""


@pytest.mark.parametrize(
    ("constructor", "reset", "found"),
    [
        ("self.start = fitted(torch.rand(2, 4), self.matrix)", "return image", []),
        ("self.start = None", "return fitted(image, self.matrix)", [6]),
    ],
)
def test_what_a_constructor_calls_runs_before_the_conversion(
    constructor: str, reset: str, found: list[int], tmp_path: Path
) -> None:
    source = Source(tmp_path / "module.py", CANVAS.format(constructor=constructor, reset=reset).encode())
    assert [finding.span.start.row for finding in check_file(source, HALF).findings] == found


HELPED = """\
import torch
from torch import nn


def angles(x):
    return torch.linalg.det(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return angles({given})

    def wide(self, x: torch.Tensor):
        return angles(self.linear(x).float())
"""


@pytest.mark.parametrize(("given", "rows"), [("self.linear(x)", [6]), ("torch.linalg.inv(self.linear(x))", [15])])
def test_what_raises_before_counts_for_each_call_by_itself(given: str, rows: list[int], tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", HELPED.format(given=given).encode())
    found = check_file(source, replace(HALF, pedantic=False, asked=frozenset(["AMP305"]))).findings
    assert [finding.span.start.row for finding in found] == rows


INITIALISED = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.apply(self.reset)

    def reset(self, module: nn.Module):
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight)

    def forward(self, x: torch.Tensor):
        return self.inner(x)
"""


@pytest.mark.parametrize(
    ("default", "named", "doubted"),
    [
        ("", [], True),
        ("", ["bf16"], False),
        ("\nmodel = Cell()\n", [], True),
        ("\ntorch.set_default_dtype(torch.bfloat16)\n", [], False),
    ],
)
def test_parameters_are_made_in_low_precision_by_a_default_dtype_alone(
    default: str, named: list[str], doubted: bool, tmp_path: Path
) -> None:
    options = judging_options(Config(), load_rules(), pedantic=True, select=["AMP305"], scenario=named)
    (finding,) = check_file(Source(tmp_path / "module.py", (INITIALISED + default).encode()), options).findings
    assert ("default-unseen" in [held.doubt.name for held in finding.doubts]) is doubted


EXPECTED = """\
import torch
from torch import nn


class Expected(torch.autograd.Function):
    @staticmethod
    def forward(ctx, angles, circuit):
        return torch.from_numpy(circuit(angles.detach(){wide}.cpu().numpy())).to(angles)

    @staticmethod
    def backward(ctx, gradient):
        return torch.from_numpy(gradient.cpu().numpy()), None


class Circuit(nn.Module):
    def __init__(self):
        super().__init__()
        self.angles = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return Expected.apply(self.angles, lambda angles: angles) * x
"""


@pytest.mark.parametrize(("wide", "doubts"), [("", ["fails-before"]), (".float()", [])])
def test_a_backward_pass_is_not_reached_behind_a_forward_that_raises(
    wide: str, doubts: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "circuit.py"
    path.write_text(EXPECTED.format(wide=wide))
    options = judging_options(Config(), load_rules(), pedantic=True, select=["AMP305"], scenario=["bf16"])
    found = [f for f in check_file(path, options).findings if f.span.start.row == 12]
    assert [[held.doubt.name for held in finding.doubts] for finding in found] == [doubts]
    scope: dict[str, type[nn.Module]] = {}
    exec(EXPECTED.format(wide=wide), scope)
    circuit, x = scope["Circuit"]().bfloat16(), torch.ones(4, dtype=torch.bfloat16)
    run = circuit(x).sum().backward if wide else lambda: circuit(x)
    with pytest.raises(TypeError, match="BFloat16"):
        run()


FACTORS = """\
import torch
from torch import nn


class Factors(nn.Module):
    def forward(self, x: torch.Tensor):
        {names} = torch.linalg.qr(x)
        return x
"""


@pytest.mark.parametrize(
    ("names", "cast"),
    [
        ("q, r", "        q, r = q.to(x.dtype), r.to(x.dtype)\n"),
        ("_, r", "        r = r.to(x.dtype)\n"),
        ("_, _", ""),
    ],
)
def test_of_what_is_unpacked_the_named_is_cast_back(names: str, cast: str, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", FACTORS.format(names=names).encode())
    found = check_file(source, HALF)
    fixed = fix_source(source, found, Applicability.UNSAFE, lambda changed: check_file(changed, HALF)).source.text
    assert f"{names} = torch.linalg.qr(x.float())\n{cast}        return x\n" in fixed


PRODUCTS = """\
import torch
from torch import nn


class Propagation(nn.Module):
    def __init__(self, indices, values):
        super().__init__()
        self.graph = torch.sparse_coo_tensor(indices, values, (4, 4))
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        y = torch.sparse.mm(self.graph, {second})
        return y @ self.weight
"""


@pytest.mark.parametrize(
    ("second", "layout", "rows"), [("x", torch.strided, []), ("self.graph", torch.sparse_coo, [13])]
)
def test_a_product_is_sparse_where_both_operands_are(second: str, layout: torch.layout, rows: list[int]) -> None:
    graph = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (4, 4))
    assert torch.sparse.mm(graph, graph if rows else torch.ones(4, 4)).layout is layout
    source = Source(Path("/project/net.py"), PRODUCTS.format(second=second).encode())
    found = [f.span.start.row for f in check_file(source, HALF).findings if f.span.start.row == 13]
    assert found == rows
