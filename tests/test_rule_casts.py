"""AMP109 and AMP112: which casts are reported, where, and what their fixes write."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Applicability, Certainty, FileResult
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = {rule.code: rule for rule in load_rules()}
FORWARD = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, use_fp16=False):
        super().__init__()
        self.use_fp16 = use_fp16
        self.table = torch.zeros(4)
        self.weight = nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor, dtype: torch.dtype, other):
"""


def check(source: Source, code: str) -> FileResult:
    return check_file(source, Options((RULES[code],), DEFAULT_SCENARIOS, "cuda", (2, 13)))


def forward(*lines: str) -> str:
    return FORWARD + "".join(f"        {line}\n" for line in lines)


def rows(code: str, text: str) -> list[int]:
    """Rows of the findings, counted from the first line of the forward pass's body."""
    result = check(Source(Path("/project/block.py"), text.encode()), code)
    assert not result.failures
    return [finding.span.start.row - FORWARD.count("\n") for finding in result.findings]


def fixed(code: str, text: str) -> str:
    source = Source(Path("/project/block.py"), text.encode())
    outcome = fix_source(source, check(source, code), Applicability.UNSAFE, lambda changed: check(changed, code))
    assert not outcome.broken
    return outcome.source.text


LOW = {
    "plain": (("return x.half()",), [1]),
    "spelled out": (("return x.to(dtype=torch.bfloat16)",), [1]),
    "an older type": (("return x.type(torch.HalfTensor)",), [1]),
    "once a block": (("y = x.half()", "return y, x.half()"), [1]),
    "twice in two": (("if x.is_cuda:", "    return x.half()", "return x.half()"), [2, 3]),
    "under a test for float32": (("if x.dtype == torch.float32:", "    x = x.half()", "return x"), []),
    "under a test for both": (("if dtype in (torch.float16, torch.bfloat16):", "    x = x.half()", "return x"), [2]),
    "under a flag": (("if self.use_fp16:", "    x = x.half()", "return x"), []),
    "under the flag's opposite": (("if not self.use_fp32:", "    x = x.half()", "return x"), []),
    "behind an early return": (("if not self.use_fp16:", "    return x", "return x.half()"), []),
    "in a conditional": (("return x.half() if dtype == torch.float16 else x",), []),
    "one of two conditions": (("if dtype == torch.float16 and x.is_cuda:", "    x = x.half()", "return x"), []),
    "what a caller chose": (("return x.to(dtype)",), []),
    "what may be a module": (("other.encoder.half()", "return x"), []),
    "a variable": (("y = other(x)", "return y.half()"), [2]),
    "a chain": (("return (", "    other(x)", "    .view(2, 2)", "    .half()", ")"), [4]),
    "with a reason": (("# kept in float16 to save memory", "return x.half()"), [2]),
    "what is not the other": (("if dtype == torch.bfloat16:", "    return x", "return x.half()"), []),
    "in place of the other": (("if x.dtype == torch.bfloat16:", "    x = x.half()", "return x"), []),
    "under a test in a variable": (("low = dtype == torch.float16", "return x.half() if low else x"), []),
    "made": (("return torch.zeros(len(x), 4, dtype=torch.half)",), [1]),
    "made by another choice": (
        ("kind = torch.float32 if other else torch.half", "return torch.zeros_like(x, dtype=kind)"),
        [],
    ),
    "made as a sample": (("return torch.zeros(1, 4, dtype=torch.half)",), []),
    "registered": (("return nn.Parameter(torch.zeros(len(x), 4, dtype=torch.half))",), []),
    "integers": (("return torch.arange(4).half()",), [1]),
}


@pytest.mark.parametrize("name", LOW)
def test_fixed_low_precision(name: str) -> None:
    lines, expected = LOW[name]
    assert rows("AMP109", forward(*lines)) == expected


OUTSIDE = {
    "made for a module": (
        "def forward(self, x):\n        y = torch.zeros(len(x), 4, dtype=torch.half)",
        "Module",
        True,
    ),
    "made for nothing": ("def run(self, n):\n        y = torch.zeros(n, 4, dtype=torch.half)", "object", False),
    "a sample": ("def run(self, n):\n        y = torch.randn(n, 4).half()", "object", False),
    "what is passed": ("def run(self, x: torch.Tensor):\n        y = x.half()", "object", True),
    "what is made of it": ("def run(self, x: torch.Tensor):\n        y = x.exp().sum(0).half()", "object", True),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_function_that_no_module_runs_chooses_for_itself(name: str) -> None:
    method, base, found = OUTSIDE[name]
    text = f"import torch\nfrom torch.nn import Module\n\n\nclass Block({base}):\n    {method}\n        return y\n"
    assert bool(rows("AMP109", text)) == found


BLANKET = {
    "any dict": ("{k: v.half() for k, v in other.items()}", False),
    "what is loaded": ("{k: v.half() for k, v in torch.load('model.pt')['model'].items()}", True),
    "a state dict": ("[v.to(dtype) for v in other.state_dict().values()]", True),
    "a state dict elsewhere": ("{k: v.to('cpu') for k, v in other.state_dict().items()}", False),
    "buffers": ("[b.to(dtype=dtype) for b in self.buffers()]", True),
    "any other dict with a dtype of the caller": ("{k: v.to(dtype) for k, v in other.items()}", False),
    "with a choice": ("{k: v.half() if v.dtype == torch.float32 else v for k, v in other.items()}", False),
    "by name": ("{k: v if 'index' in k else v.half() for k, v in other.state_dict().items()}", True),
    "all tensors of it": (
        "{k: v.to(x.device).half() if isinstance(v, torch.Tensor) else v for k, v in other.state_dict().items()}",
        True,
    ),
    "a nest": ("torch.utils._pytree.tree_map(lambda v: v.half(), other)", True),
    "a nest with a test": (
        "torch.utils._pytree.tree_map(lambda v: v.half() if v.dtype.is_floating_point else v, other)",
        False,
    ),
    "a module": ("other._apply(lambda v: v.to(dtype))", True),
    "a few that are named": ("[*map(lambda v: v.half(), (x, other))]", False),
    "of another variable": ("{k: x.view(4) for k, v in other.items()}", False),
}


@pytest.mark.parametrize("name", BLANKET)
def test_blanket_cast(name: str) -> None:
    text, found = BLANKET[name]
    module = forward(f"return {text}").replace("def forward(", "def gather(")
    assert rows("AMP109", module) == ([1] if found else [])


def test_blanket_cast_gets_a_test() -> None:
    text = fixed("AMP109", forward("return {k: v.half() for k, v in other.state_dict().items()}"))
    assert "{k: (v.half() if v.is_floating_point() else v) for k, v in other.state_dict().items()}" in text


DISCARDED = {
    "an argument": (("x.half()", "return x"), "        x = x.half()\n"),
    "an attribute": (
        ("self.table.to(x.device, dtype)", "return x"),
        "        self.table = self.table.to(x.device, dtype)\n",
    ),
    "a parameter": (("self.weight.half()", "return x"), None),
    "a loop": (("for part in x:", "    part.half()", "return x"), None),
}


@pytest.mark.parametrize("name", DISCARDED)
def test_discarded_cast(name: str) -> None:
    lines, wanted = DISCARDED[name]
    text = forward(*lines)
    (finding,) = check(Source(Path("/project/block.py"), text.encode()), "AMP112").findings
    assert finding.certainty is Certainty.PROVEN
    if wanted is None:
        assert finding.fix is None
        assert fixed("AMP112", text) == text
    else:
        assert wanted in fixed("AMP112", text)
        assert rows("AMP112", fixed("AMP112", text)) == []


KEPT = {
    "assigned": ("x = x.half()",),
    "a module": ("other.half()",),
    "another device": ("x.to('cuda')",),
    "in place": ("x.copy_(x.half())",),
    "in place before": ("other.add_(x).to(dtype)",),
    "the same dtype": ("x.float().float()",),
}


@pytest.mark.parametrize("name", KEPT)
def test_nothing_is_discarded(name: str) -> None:
    assert rows("AMP112", forward(*KEPT[name], "return x")) == []


UNTYPED = """\
import torch


def masked(lengths, size, dtype=torch.bool):
    mask = torch.arange(size)[None] < lengths[:, None]
    mask.type(dtype)
    return mask


def loaded(model, state, device):
    model.load_state_dict(state)
    model.to(device).double()


def moved(table, device):
    table.to(device).double()
    return table.unsqueeze(0)
"""


def test_a_cast_to_what_is_there_and_one_of_a_module_throw_nothing_away() -> None:
    found = check(Source(Path("/project/cast.py"), UNTYPED.encode()), "AMP112").findings
    assert [finding.span.start.row for finding in found] == [16]
