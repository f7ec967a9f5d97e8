"""AMP302: which functions run in a module's scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import binary_ufuncs, unary_ufuncs

from amplint.claims.vanishing_epsilons import AT_ZERO
from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP302")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
HELPER = """\
import torch
from torch import nn


def log(t, eps=1e-12):
    return torch.log(t.clamp(min=eps))


class Loss(nn.Module):
    def forward(self, batch):
        return {call}
"""


@pytest.mark.parametrize(("call", "found"), [("log(batch['shares'])", 1), ("batch['shares']", 0)])
def test_a_helper_of_a_module_runs_in_its_scenario(call: str, found: int) -> None:
    result = check_file(Source(Path("/project/loss.py"), HELPER.format(call=call).encode()), OPTIONS)
    assert not result.failures
    assert [finding.span.start.row for finding in result.findings] == [6] * found


SPECTROGRAM = """\
import torch
from torch import nn


class Spectrogram(nn.Module):
    def forward(self, filters: torch.Tensor, magnitudes: torch.Tensor):
        mel = filters @ magnitudes
        decibel = {logarithm}
        {rest}
        return decibel / 4.0
"""
LOGARITHMS = ("torch.clamp(mel, min=1e-10).log10()", "torch.log(mel + 1e-10)", "(1e-9 + mel).log()[..., 1:]")


@pytest.mark.parametrize("logarithm", LOGARITHMS)
@pytest.mark.parametrize(
    ("rest", "count"),
    [
        ("decibel = torch.maximum(decibel, decibel.max() - 8.0)", 0),
        ("decibel = torch.max(decibel, decibel.amax((-2, -1), keepdim=True) - 8.0)", 0),
        ("top = decibel.amax(); decibel = torch.maximum(decibel, top - 8.0)", 0),
        ("decibel = torch.maximum(decibel, decibel.max() - 8.0) + 0 * decibel", 1),
        ("decibel = decibel - decibel.mean()", 1),
        ("top = decibel.amax()", 1),
    ],
)
def test_a_spectrogram_ends_below_its_largest_number(logarithm: str, rest: str, count: int) -> None:
    code = SPECTROGRAM.format(logarithm=logarithm, rest=rest)
    assert len(check_file(Source(Path("/project/spectrogram.py"), code.encode()), OPTIONS).findings) == count
    silent = torch.tensor([[0.0, 1.0]], dtype=torch.float16)
    names: dict[str, Any] = {}
    exec(code, names)
    found = names["Spectrogram"]()(silent.new_ones(1, 1), silent if "1:" not in logarithm else silent.repeat(1, 2))
    assert found.isfinite().all() or count


CONSUMED = """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y = self.linear(x)
        return {consumer}
"""


@pytest.mark.parametrize(
    ("consumer", "count"),
    [
        ("torch.log_softmax(y + 1e-10, -1)", 0),
        ("torch.nn.functional.gelu(y + 1e-10)", 0),
        ("(y + 1e-10).softmax(-1)", 0),
        ("torch.sqrt(y + 1e-10)", 1),
        ("(1e-10 + y).log2()", 1),
        ("1 / (y + 1e-10)", 1),
        ("torch.reciprocal(y + 1e-10)", 1),
        ("(y + 1e-10).pow(-0.5)", 1),
    ],
)
def test_what_is_finite_at_zero_needs_no_guard(consumer: str, count: int) -> None:
    code = CONSUMED.format(consumer=consumer)
    assert len(check_file(Source(Path("/project/head.py"), code.encode()), OPTIONS).findings) == count
    zero = torch.zeros(4, dtype=torch.float16, requires_grad=True)
    given = eval(consumer, {"torch": torch, "y": zero})
    given.sum().backward()
    assert zero.grad is not None
    assert (given.isfinite().all() and zero.grad.isfinite().all()) == (count == 0)


def _not_finite(call: Any) -> bool:
    """Whether the result or the gradient of a function of zeros is not finite; False where it cannot run."""
    zeros = torch.zeros(3, requires_grad=True)
    try:
        out = call(zeros)
        if out.isfinite().all() and out.requires_grad:
            out.sum().backward()
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return False
    return not out.isfinite().all() or (zeros.grad is not None and not zeros.grad.isfinite().all())


def _bad_at_zero() -> set[str]:
    two, none = torch.full((3,), 2.0), torch.zeros(3)
    found = set()
    for op in (*unary_ufuncs, *binary_ufuncs):
        if op.name.startswith(("_refs", "jiterator")):
            continue
        if op in unary_ufuncs:
            sample = next(iter(op.sample_inputs("cpu", torch.float32)))
            ways = [lambda x, op=op, sample=sample: op.op(x, *sample.args, **sample.kwargs)]
        else:
            operands = (lambda x: (two, x), lambda x: (x, two), lambda x: (x, none))
            ways = [lambda x, op=op, make=make: op.op(*make(x)) for make in operands]
        if any(map(_not_finite, ways)):
            found |= {name.rpartition(".")[2] for name in (op.name, *(alias.name for alias in op.aliases))}
    return {name for name in found if not name.startswith("_")}


def test_functions_that_do_not_bear_zero_are_those_of_torch() -> None:
    assert _bad_at_zero() == AT_ZERO
