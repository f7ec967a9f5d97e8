"""What may be complex is taken for no half tensor, and no fix casts it: that would drop the phase in silence."""

from __future__ import annotations

import ast
import random
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.complex_casts import casts_complex
from amplint.engine import Options, check_file
from amplint.finding import Applicability, Edit, Fix
from amplint.infer.flow.complex_values import complex_values
from amplint.infer.lattice.scenarios import find_scenario
from amplint.plugins import load_rules
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.finding import Finding

RULES = tuple(rule for rule in load_rules() if rule.code in ("AMP103", "AMP305"))
FP16 = find_scenario("fp16")
assert FP16 is not None
HEAD = "import torch\nimport torch.nn as nn\nfrom torch import angle as phase_of, view_as_real\n"

COMPLEX = {
    "angle": "return y.angle()",
    "angle of torch": "return torch.angle(y)",
    "angle under another name": "return phase_of(y)",
    "real": "return y.real",
    "real of torch": "return torch.real(y)",
    "imag of a part": "return y[..., 0].imag",
    "pairs": "return view_as_real(y * 2)",
    "pairs of a product": "return torch.view_as_real(torch.polar(torch.ones(2, 2), torch.ones(2, 2)) * y)",
    "conj": "return (y * y.conj()).sum()",
    "inverse transform": "return torch.fft.irfft(y, n=2)",
    "inverse short transform": "return torch.istft(y, n_fft=2, window=torch.ones(2))",
    "a variable": "z = y.transpose(0, 1)\n    return z.angle()",
    "two variables": "a, b = y.chunk(2)\n    return a.angle()",
    "a loop": "return [part.imag for part in y]",
    "a function of the file": "return phase(y)",
    "a function of the file, by keyword": "return phase(spectrum=y)",
    "what a function of the file gives": "return turned(y).imag",
    "a branch": "if y.ndim == 2:\n        y = y * 2\n    return y.angle()",
    "one branch": "if y.ndim == 2:\n        return y.angle()\n    return y.abs()",
    "a function in it": "def inner():\n        return y.angle()\n    return inner()",
}
REAL = {
    "a modulus": "return y.abs()",
    "another variable": "z = torch.polar(torch.ones(2, 2), torch.ones(2, 2))\n    return y * z.angle()",
    "the name used again": "y = torch.complex(y, y)\n    return y.angle()",
    "the parts of a complex one": "return torch.complex(y, y)",
    "pairs that become complex": "return torch.view_as_complex(y)",
    "a layer called real": "return nn.Module.real(y) if y is None else y",
    "words": "return y  # angle, real, imag",
    "a transform": "return torch.fft.fft(y)",
}
FUNCTIONS = "def phase(spectrum):\n    return spectrum.angle()\n\n\ndef turned(x):\n    return x * 2\n\n\n"


def program(rest: str, *, cast: str = "") -> str:
    """A function whose parameter meets a float32 constant, and then what shows that it is complex, or does not."""
    return f"{HEAD}{FUNCTIONS}def forward(y: torch.Tensor):\n    w = y{cast} @ torch.ones(2, 2)\n    {rest}\n"


def found(tmp_path: Path, text: str) -> list[Finding]:
    result = check_file(
        Source(tmp_path / "model.py", text.encode()), Options(RULES, (FP16,), torch_version=(2, 13), pedantic=True)
    )
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize("rest", COMPLEX.values(), ids=COMPLEX)
def test_what_only_complex_tensors_bear_is_no_half_tensor(rest: str, tmp_path: Path) -> None:
    assert found(tmp_path, program(rest)) == []


@pytest.mark.parametrize("rest", REAL.values(), ids=REAL)
def test_all_else_is_judged_as_before(rest: str, tmp_path: Path) -> None:
    (finding, *_) = found(tmp_path, program(rest))
    assert finding.code == "AMP103"
    assert finding.fix is not None


@pytest.mark.parametrize("name", ["angle", "angle of torch", "imag of a part", "pairs", "a variable", "one branch"])
def test_the_cast_would_drop_the_phase(name: str) -> None:
    """In torch: the function of a complex tensor, and of what ``.float()`` leaves of it."""
    spaces: list[dict[str, Any]] = [{}, {}]
    rest = COMPLEX[name]
    exec(program(rest).replace("w = y @ torch.ones(2, 2)", "pass"), spaces[0])
    exec(program(rest).replace("w = y @ torch.ones(2, 2)", "y = y.float().to(torch.complex64)"), spaces[1])
    z = torch.polar(torch.ones(2, 2), torch.full((2, 2), 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, cast = spaces[0]["forward"](z), spaces[1]["forward"](z)
    assert not torch.allclose(whole, cast)


ASKED = "def solve(x: torch.Tensor):\n    {test}\n    return torch.linalg.inv(x)\n"


@pytest.mark.parametrize(
    ("test", "fixed"),
    [
        ("if x.is_complex(): return x", False),
        ("if torch.is_complex(x): return x", False),
        ("if x.dtype.is_complex: return x", False),
        ("if x.ndim == 1: return x", True),
    ],
)
def test_what_a_function_asks_about_is_found_and_not_cast(test: str, fixed: bool, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, HEAD + ASKED.format(test=test))
    assert finding.code == "AMP305"
    assert (finding.fix is not None) is fixed


BODY = """\
class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.turn = torch.polar(torch.ones(size), torch.ones(size))
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        product = spectrum * self.weight
        size = product.abs()
        {line}
"""
EDITS = [
    ("return PLACE + 1", "product", ".float()", True),
    ("return PLACE + 1", "spectrum[0]", ".to(x.dtype)", True),
    ("return PLACE + 1", "(spectrum + x)", ".float()", True),
    ("return PLACE + 1", "self.turn", ".to(x.dtype)", True),
    ("return PLACE + 1", "torch.fft.ifft(x)", ".half()", True),
    ("return PLACE + 1", "(1j * x)", ".float()", True),
    ("return PLACE + 1", "size", ".float()", False),
    ("return PLACE + 1", "product.real", ".float()", False),
    ("return PLACE + 1", "torch.abs(product)", ".float()", False),
    ("return PLACE + 1", "self.weight", ".float()", False),
    ("return PLACE + 1", "x", ".float()", False),
    ("return PLACE + 1", "product", ".contiguous()", False),
]


@pytest.mark.parametrize(("line", "operand", "trailer", "refused"), EDITS)
@pytest.mark.parametrize("whole", [True, False])
def test_every_fix_goes_through_one_gate(
    line: str, operand: str, trailer: str, refused: bool, whole: bool, tmp_path: Path
) -> None:
    """An edit that appends a cast, and one that writes the operand anew with it."""
    text = HEAD + BODY.format(line=line.replace("PLACE", operand))
    source = Source(tmp_path / "layer.py", text.encode())
    row = len(source.lines)
    start = Location(row, source.line(row).index(operand) + 1)
    end = Location(row, start.column + len(operand))
    edit = Edit(Span(start, end), operand + trailer) if whole else Edit(Span(end, end), trailer)
    assert casts_complex(source, Fix(Applicability.UNSAFE, "cast", (edit,))) is refused


@pytest.mark.parametrize(("name", "refused"), [("product", True), ("size", False)])
def test_a_dtype_that_a_fix_gives_is_a_cast(name: str, refused: bool, tmp_path: Path) -> None:
    text = HEAD + BODY.format(line=f"return torch.sum({name})")
    source = Source(tmp_path / "layer.py", text.encode())
    row = len(source.lines)
    place = Location(row, len(source.line(row)))
    edit = Edit(Span(place, place), ", dtype=torch.float32")
    assert casts_complex(source, Fix(Applicability.UNSAFE, "widen", (edit,))) is refused


STEPS = (
    "{new} = {a} * {b}",
    "{new} = {a} + 1",
    "{new} = -{a}[..., :2]",
    "{new} = {a}.abs()",
    "{new} = torch.abs({a})",
    "{new} = torch.real({a})",
    "{new} = {a}.transpose(0, 1).clone()",
    "{new} = torch.cat([{a}, {b}])[:2]",
    "{new}, _ = {a}, {b}",
    "{new} = twice({a})",
    "{new} = {a} if {b}.ndim > 1 else {b}",
    "{new} = torch.stack(({a}, {b})).sum(0)",
    "{new} = {a}\n    {new} *= 2",
    "{new} = torch.angle({a})",
)
MAKERS = (
    "{new} = torch.complex({r}, {r})",
    "{new} = torch.polar({r}, {r})",
    "{new} = torch.fft.fft({r})[:2, :2]",
    "{new} = {r}.to(torch.complex64)",
    "{new} = {r} * 1j",
)
USES = ("{a}.angle()", "{a}.imag", "torch.view_as_real({a})", "torch.angle({a}[0])", "{a}.real")


def drawn(seed: int, *, of_complex: bool) -> tuple[str, list[str]]:
    """A straight program over its parameter ``p``, and its variables."""
    chance = random.Random(seed)
    names, lines = ["p"], []
    for number in range(8):
        new = f"v{number}"
        steps = (*STEPS, *(() if of_complex else MAKERS))
        lines.append(chance.choice(steps).format(new=new, a=chance.choice(names), b=chance.choice(names), r="q"))
        names.append(new)
    lines += [f"u = {chance.choice(USES).format(a='p')}"] if of_complex else []
    body = "\n    ".join([*lines, "return dict(locals())"])
    return f"import torch\n\ndef twice(x):\n    return x * 2\n\ndef run(p, q):\n    {body}\n", names


@pytest.mark.parametrize("of_complex", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_what_is_complex_in_torch_may_be_complex(seed: int, of_complex: bool) -> None:
    """Whatever a program computes from what it uses as complex, or makes complex."""
    text, names = drawn(seed, of_complex=of_complex)
    space: dict[str, Any] = {}
    exec(text, space)
    parameter = torch.polar(torch.ones(2, 2), torch.ones(2, 2)) if of_complex else torch.ones(2, 2)
    values = space["run"](parameter, torch.ones(2, 2))
    held = complex_values(ast.parse(text))
    complex_ones = [name for name in names if values[name].is_complex()]
    row = text.count("\n")
    missed = [name for name in complex_ones if not held.may_be_complex(ast.Name(name, ast.Load()), row)]
    assert missed == [], text
