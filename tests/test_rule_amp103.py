"""AMP103's fixes: the safe ones change no bit wherever the program ran before, and no other calls itself safe."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult, Finding
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP103")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
STATES = (None, torch.float16, torch.bfloat16)

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.conv = nn.Conv1d(4, 4, 1)

    def forward(self, x: torch.Tensor):
        {first}
        return {second}
"""
SAFE = {
    "matrix": ("made = torch.eye(4, device=x.device)", "x @ made"),
    "view": ("made = torch.ones(4, device=x.device).view(1, 4).expand(4, 4)", "torch.matmul(made, x)"),
    "inline": ("y = self.proj(x)", "torch.bmm(x, torch.eye(4)[None].repeat(2, 1, 1)) + y"),
    "argument": ("made = torch.zeros(2, 4, 4)", "torch.baddbmm(made, x, x)"),
    "layer": ("start = torch.ones(2, 4, 4)", "self.conv(start) + x"),
    "local": ("y, made = x * 2, torch.eye(4)", "F.linear(y, torch.eye(4))"),
    "einsum": ("made = torch.eye(4)", "torch.einsum('bij,jk->bik', x, made)"),
    "plain": ("made = torch.zeros(2, 4, 4)", "torch.lerp(made, x, 0.5)"),
}
UNSAFE = {
    "random": ("made = torch.randn(4, 4)", "x @ made"),
    "twice": ("made = torch.eye(4)", "(x @ made) * made"),
    "range": ("made = torch.linspace(0, 1, 16).view(4, 4)", "x @ made"),
    "computed": ("made = torch.eye(4) * 0.1", "x @ made"),
    "written": ("made = torch.zeros(4, 4); made[0, 0] = 0.1", "x @ made"),
    "filled": ("made = torch.zeros(4, 4); made.fill_(0.1)", "x @ made"),
    "trained": ("made = torch.eye(4, requires_grad=True)", "x @ made"),
    "widest": ("made = torch.zeros(2, 4, 4)", "torch.cross(made[..., :3], x[..., :3], dim=-1)"),
}


def check(source: Source) -> FileResult:
    return check_file(source, Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13)))


def only_finding(text: str) -> Finding:
    (finding,) = check(Source(Path("/project/block.py"), text.encode())).findings
    return finding


def fixed(text: str, highest: Applicability) -> str:
    source = Source(Path("/project/block.py"), text.encode())
    outcome = fix_source(source, check(source), highest, check)
    assert not outcome.broken
    return outcome.source.text


def run(text: str, dtype: torch.dtype, state: torch.dtype | None) -> Tensor | None:
    """What the program returns, None where it raises: parameters and input in one dtype, autocast on or off."""
    namespace: dict[str, Any] = {}
    exec(compile(text, "block.py", "exec"), namespace)
    torch.manual_seed(0)
    block = namespace["Block"]().to(dtype)
    x = torch.randn(2, 4, 4, dtype=torch.float64).to(dtype)
    try:
        with torch.autocast("cpu", dtype=state) if state is not None else nullcontext(), torch.no_grad():
            result: Tensor = block(x)
    except RuntimeError:
        return None
    return result


@pytest.mark.parametrize("name", SAFE)
def test_safe_fix_changes_no_bit(name: str) -> None:
    first, second = SAFE[name]
    before = PROGRAM.format(first=first, second=second)
    finding = only_finding(before)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    after = fixed(before, Applicability.SAFE)
    ran, cured = 0, 0
    for dtype in FLOATS:
        for state in STATES:
            old, new = run(before, dtype, state), run(after, dtype, state)
            if old is None:
                cured += new is not None
                continue
            ran += 1
            assert new is not None
            assert new.dtype == old.dtype
            assert torch.equal(new, old)
    assert ran
    assert cured


@pytest.mark.parametrize("name", UNSAFE)
def test_other_fixes_are_unsafe(name: str) -> None:
    first, second = UNSAFE[name]
    before = PROGRAM.format(first=first, second=second)
    finding = only_finding(before)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert fixed(before, Applicability.SAFE) == before
    after = fixed(before, Applicability.UNSAFE)
    for dtype in (torch.float16, torch.bfloat16):
        assert run(before, dtype, None) is None
        assert run(after, dtype, None) is not None


def test_dtype_is_written_where_the_tensor_is_made() -> None:
    text = PROGRAM.format(first="made = torch.eye(4, device=x.device)", second="x @ made")
    assert "torch.eye(4, device=x.device, dtype=x.dtype)" in fixed(text, Applicability.SAFE)


def test_what_is_rebound_is_asked_at_the_operation() -> None:
    text = PROGRAM.format(first="made = torch.eye(4); x = self.proj(x)", second="x @ made")
    assert "x @ made.to(x.dtype)" in fixed(text, Applicability.SAFE)


def test_range_keeps_its_precision() -> None:
    text = PROGRAM.format(first="made = torch.linspace(0, 1, 16).view(4, 4)", second="x @ made")
    assert "x @ made.to(x.dtype)" in fixed(text, Applicability.UNSAFE)


RECURRENT = """\
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.step = nn.Embedding(8, 4), nn.Linear(4, 4)
        self.register_buffer("kept", torch.ones(4))

    def forward(self, tokens):
        state, started = self.tokens(tokens), False
        {before}
        for _ in range(2):
            state = torch.tanh(self.step(state)) * 2 + state
            {inside}
        return self.step(state)
"""


@pytest.mark.parametrize(
    ("before", "inside", "told"),
    [
        ("mask = torch.ones(4) if self.training else self.kept", "state = state * mask", "self.step(state)"),
        (
            "mask = self.kept\n        if self.training: mask = torch.rand(4) * 2",
            "state = state + mask / 2",
            "self.step(state)",
        ),
        ("mask = self.kept.float() if self.training else self.kept", "state = state * mask", ""),
        ("mask = torch.ones_like(self.kept) if self.training else self.kept", "state = state * mask", ""),
        (
            "total = torch.zeros(4)",
            "total = state + total if started else state; started = True; state = self.step(total)",
            "",
        ),
        (
            "mask = torch.ones(4) if self.training else self.kept",
            "state = state * mask + self.step(mask)",
            "self.step(mask)",
        ),
    ],
)
def test_a_constant_that_one_way_brings_into_a_recurrence_is_told(
    tmp_path: Path, before: str, inside: str, told: str
) -> None:
    """Told where the ways to it and past it are both taken, but not where it is a variable's first value only, or fails
    by itself before."""
    path = tmp_path / "recurrent.py"
    path.write_text(RECURRENT.format(before=before, inside=inside))
    source = Source(path, path.read_bytes())
    assert {source.segment(found.span) for found in check(source).findings} == ({told} if told else set())


GUARDED = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, more: torch.Tensor | None = None):
        rows = len(x)
        if more is None:
            more = {made}
        {then}
        if more.shape[{dim}] != 0:
            x = x + self.proj(self.proj(more))
        return x
"""


@pytest.mark.parametrize(
    ("made", "dim", "then", "told"),
    [
        ("torch.zeros((rows, 0)).to(x.device)", 1, "", False),
        ("torch.zeros(rows, 0)", 1, "", False),
        ("torch.empty(0)", 0, "", False),
        ("torch.ones(size=(0, 4), device=x.device)", 0, "", False),
        ("torch.zeros((rows, 4))", 1, "", True),
        ("torch.full((rows, 4), 0.0)", 1, "", True),
        ("torch.zeros(0, 4)", 0, "more = torch.cat([torch.zeros(0, 4), x])", True),
    ],
)
def test_a_tensor_without_elements_meets_no_layer_that_asks_for_some(
    made: str, dim: int, then: str, told: bool, tmp_path: Path
) -> None:
    code = GUARDED.format(made=made, dim=dim, then=then)
    path = tmp_path / "block.py"
    path.write_text(code)
    assert bool(check_file(path, Options(RULES)).findings) is told
    scope: dict[str, Any] = {}
    exec(code, scope)
    with pytest.raises(RuntimeError, match="dtype") if told else nullcontext():
        scope["Block"]().half()(torch.ones(2, 4).half())


TWICE = """\
import torch
from torch import nn


def attend(proj, x, cache):
    y = proj(x)
    if cache.size(0) > 0:
        y = torch.cat([cache, y])
    return y @ proj(x).mT


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        first = attend(self.proj, x, torch.zeros(0, 4))
        return first, attend(self.proj, x, torch.zeros(2, 4))
"""


def test_what_one_call_gets_without_elements_another_gets_with_some(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(TWICE)
    assert [finding.span.start.row for finding in check_file(path, Options(RULES)).findings] == [9]
    scope: dict[str, Any] = {}
    exec(TWICE, scope)
    with pytest.raises(RuntimeError, match="dtype"):
        scope["Net"]().half()(torch.ones(2, 4).half())


READ_BY_ADDRESS = """\
import ctypes

import torch


def largest(x: torch.Tensor, read):
    out = torch.zeros(1, device=x.device)
    read(ctypes.c_void_p(out.data_ptr()))
    return out
"""
BUILDS = "\n\ndef build(make):\n    torch.set_default_dtype(torch.bfloat16)\n    return make()\n"


@pytest.mark.parametrize(("code", "certainty"), [(READ_BY_ADDRESS, "possible"), (READ_BY_ADDRESS + BUILDS, "likely")])
def test_a_default_of_16_bit_has_to_be_set_somewhere(code: str, certainty: str) -> None:
    found = check_file(Source(Path("/project/kernels.py"), code.encode()), Options(RULES, pedantic=True)).findings
    assert [finding.certainty.value for finding in found] == [certainty]
