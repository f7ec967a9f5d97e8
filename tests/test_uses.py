"""What the inference notes for the rules on range: extreme numbers, what values are like, what kernels see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.dtypes import names_of
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.lattice.values import Limit, Trait
from amplint.source import Source

if TYPE_CHECKING:
    from amplint.infer.state.facts import FileFacts, Use

SCENARIOS = (CONTROL, *DEFAULT_SCENARIOS)
AUTOCAST = next(i for i, scenario in enumerate(SCENARIOS) if scenario.name == "autocast-bf16")
HALF = next(i for i, scenario in enumerate(SCENARIOS) if scenario.name == "fp16")
MODULE = """\
import torch
from torch import nn

GLOBAL = -10.0 ** 9


class Module(nn.Module):
    def __init__(self, default=-1e9):
        super().__init__()
        self.attribute = default
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        h = self.linear(x)
        {}
"""


def facts_of(line: str) -> FileFacts:
    source = Source(Path("/project/module.py"), MODULE.format(line).encode())
    return analyse(source, scenarios=SCENARIOS, device="cuda", torch_version=(2, 13))


def uses_of(line: str, op: str) -> list[Use]:
    return [use for use in facts_of(line).uses if use.op.rsplit(".", 1)[1] == op]


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("-1e9", -1e9),
        ("GLOBAL", -1e9),
        ("-(10 ** 9)", -1e9),
        ("self.attribute", -1e9),
        ("-float(1e9)", -1e9),
        ("float('-1e20')", -1e20),
        ("-(2**32) + 1", 1.0 - 2**32),
        ("1 - 2**32", 1.0 - 2**32),
        ("GLOBAL + self.attribute", -2e9),
        ("-float(2**200) ** 9", None),
        ("torch.tensor(-1e9)", -1e9),
        ("torch.tensor(-1e9, device=h.device)", -1e9),
        ("torch.tensor(-1e9).to(h.device)", -1e9),
        ("torch.tensor(-1e9).half()", None),
        ("torch.tensor(-1e9, dtype=h.dtype)", None),
        ("torch.tensor([-1e9])", None),
        ("2 * torch.tensor(-1e9)", None),
        ("max(self.attribute, -1e4)", None),
        ("-1e4", None),
        ("float('-inf')", None),
        ("-1e9 if mask.any() else -1e4", None),
    ],
)
def test_extreme_numbers_are_followed(expression: str, number: float | None) -> None:
    uses = uses_of(f"return h.masked_fill(mask, {expression})", "masked_fill")
    assert [use.numbers.get("value") for use in uses] == ([number] if number is not None else [])


def test_a_limit_has_the_dtype_it_is_of() -> None:
    (use,) = uses_of("return h.masked_fill(mask, -torch.finfo(h.dtype).max)", "masked_fill")
    limit = use.numbers["value"]
    assert isinstance(limit, Limit)
    assert (limit.name, limit.negated) == ("max", True)
    assert names_of(limit.dtypes[HALF].mask) == ["float16"]
    assert names_of(limit.dtypes[AUTOCAST].mask) == ["bfloat16"]


@pytest.mark.parametrize(
    ("expression", "trait"),
    [
        ("(h * h)", Trait.SQUARE),
        ("h ** 2", Trait.SQUARE),
        ("h.pow(2)", Trait.SQUARE),
        ("h.tanh() ** 2", Trait.BOUNDED),
        ("-(h * h)", Trait.NEGATIVE),
        ("(h - h.amax(-1, keepdim=True))", Trait.NEGATIVE),
        ("-nn.functional.softplus(h)", Trait.NEGATIVE),
        ("(-h.abs() * -x.abs())", Trait.POSITIVE),
        ("h.exp()", Trait.EXPONENTIAL),
        ("-nn.functional.softplus(x) * h.exp()", Trait.DECAY),
        ("h.sigmoid()", Trait.SHARE),
        ("1 - h.softmax(-1)", Trait.REST),
        ("1 - h.sigmoid() + 0.5", Trait.BOUNDED),
        ("(h * x)", None),
        ("h ** 3", None),
    ],
)
def test_what_values_are_like(expression: str, trait: Trait | None) -> None:
    uses = uses_of(f"return torch.expm1({expression})", "expm1")
    assert {use.operands[0].value.trait for use in uses} == {trait}


def test_kernels_see_what_autocast_casts() -> None:
    """CUDA's autocast computes ``exp`` in float32, ``softmax`` too, and leaves the operand of ``inv`` alone."""
    for call, autocast in (("h.exp()", "float32"), ("h.softmax(-1)", "float32"), ("torch.linalg.inv(h)", "bfloat16")):
        (use,) = (use for use in facts_of(f"return {call}").uses)
        assert names_of(use.operands[0].value.dtypes[AUTOCAST].mask) == [autocast], call
        assert names_of(use.operands[0].value.dtypes[HALF].mask) == ["float16"], call


def test_counts_are_those_of_arange_without_a_small_end() -> None:
    assert uses_of("return torch.outer(torch.arange(x.shape[1]).to(h.dtype), h[0, 0])", "outer")
    assert not uses_of("return torch.outer(torch.arange(64).to(h.dtype), h[0, 0])", "outer")


def test_a_test_of_the_device_is_settled_in_a_variable_too() -> None:
    line = (
        "on_cpu = h.device.type == 'cpu' and h.dtype == torch.float16\n        if on_cpu:\n            h = h.float()\n"
    )
    (use,) = uses_of(f"{line}        return torch.linalg.inv(h)", "inv")
    assert names_of(use.operands[0].value.dtypes[HALF].mask) == ["float16"]


def test_a_constructor_runs_before_the_module_is_converted() -> None:
    text = MODULE.replace(
        "self.linear = nn.Linear(4, 4)", "self.linear = nn.Linear(4, 4); torch.linalg.inv(self.linear.weight)"
    )
    source = Source(Path("/project/module.py"), text.format("return h").encode())
    assert not analyse(source, scenarios=SCENARIOS, device="cuda", torch_version=(2, 13)).uses


def test_small_epsilons_are_followed() -> None:
    (use,) = uses_of("return (h.var(-1) + 1e-5).rsqrt()", "add")
    assert [*use.numbers.values()] == [1e-5]
    assert use.operands[0].value.trait is Trait.POSITIVE


@pytest.mark.parametrize(
    ("kind", "dtype"), [("nn.Linear", "float16"), ("Module", "float16"), ("nn.Module", None), ("int", None)]
)
def test_isinstance_says_what_a_module_is(kind: str, dtype: str | None) -> None:
    of = "part.linear" if kind == "Module" else "part"
    line = f"return h\n\n    def reset(self, part):\n        if isinstance(part, {kind}):\n"
    uses = uses_of(f"{line}            nn.init.orthogonal_({of}.weight)", "orthogonal_")
    assert [names_of(use.operands[0].value.dtypes[HALF].mask) for use in uses] == ([[dtype]] if dtype else [])


def test_a_class_of_another_library_with_a_decorated_forward_is_a_module() -> None:
    text = MODULE.replace("nn.Module)", "library.Base)").replace(
        "    def forward", "    @library.renamed\n    def forward"
    )
    source = Source(
        Path("/project/module.py"), f"import library\n{text}".format("return self.linear.weight.exp()").encode()
    )
    (use,) = analyse(source, scenarios=SCENARIOS, device="cuda", torch_version=(2, 13)).uses
    assert names_of(use.operands[0].value.dtypes[HALF].mask) == ["float16"]


@pytest.mark.parametrize(
    ("expression", "dtypes"),
    [
        ("einx.where('b, b n, -> b n', keep, h, 0.0)", ["float16"]),
        ("einx.multiply('b, b n -> b n', steps, h)", ["float16"]),
        ("einx.get_at('b [n] -> b', h, steps)", ["float16"]),
        ("einx.sum('b [n] -> b', h)", []),
    ],
)
def test_einx_does_what_torch_does_to_shaped_arguments(expression: str, dtypes: list[str]) -> None:
    shaped = MODULE.replace("x: torch.Tensor, mask", "x: Float['b n'], keep: Bool['b'], steps: Int['b'], mask")
    text = f"import einx\nfrom jaxtyping import Bool, Float, Int\n{shaped}".format(
        f"return torch.linalg.inv({expression})"
    )
    source = Source(Path("/project/module.py"), text.encode())
    uses = analyse(source, scenarios=SCENARIOS, device="cuda", torch_version=(2, 13)).uses
    assert [names_of(use.operands[0].value.dtypes[HALF].mask) for use in uses if use.op.endswith("inv")] == (
        [dtypes] if dtypes else []
    )
