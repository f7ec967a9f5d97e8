"""AMP604: a nested legacy autocast() without dtype, and how its fix and AMP601's get on with each other."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from amplint_rules.amp601_deprecated_amp_api import DeprecatedAmpApi
from amplint_rules.amp604_nested_default_dtype import NestedDefaultDtype
from rule_examples import bad, good
from rule_harness import SCENARIOS, expected_rows, findings, fixed, rows, source_of

from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.dtypes import BFLOAT16, BITS, FLOAT16, OFF, UNCERTAIN, Ambient, Autocast
from amplint.infer.state.facts import Region
from amplint.infer.syntax.references import references
from amplint.rule_base import HEADINGS, Example, documentation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amplint.source import Source

torch = pytest.importorskip("torch")

RULE = NestedDefaultDtype()
AMBIENT: Autocast = tuple(Ambient(BITS[s.autocast]) if s.autocast else OFF for s in SCENARIOS)
ALL_OFF: Autocast = (OFF,) * len(SCENARIOS)


def regions(before: Autocast = AMBIENT, *, nested: bool = True) -> Callable[[Source], Iterable[Region]]:
    """Every autocast call of the file as a region in one and the same state."""

    def find(source: Source) -> Iterable[Region]:
        for reference in references(source.tree):
            if reference.call is None or not reference.name.endswith(".autocast"):
                continue
            keywords = {keyword.arg: keyword.value for keyword in reference.call.keywords}
            given = "dtype" in keywords or len(reference.call.args) > 1
            low = BFLOAT16 if "cpu" in reference.name else FLOAT16
            inside = tuple(Ambient(low) for _ in SCENARIOS)
            yield Region(reference.call, reference.name, before, inside, nested, given, reference.call)

    return find


def case(call: str) -> str:
    return f"import torch\nwith {call}:\n    pass\n"


def test_documentation() -> None:
    text = documentation(RULE)
    assert [heading for heading in HEADINGS if f"\n{heading}\n" in text] == list(HEADINGS)


def run(code: str) -> None:
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "case", "exec"), namespace)
        namespace["reproduce"]()


@pytest.mark.parametrize("example", [case.example for case in bad(RULE)])
def test_bad_examples(example: Example) -> None:
    def of_legacy(source: Source) -> Iterable[Region]:
        return [region for region in regions()(source) if ".amp." in region.name]

    assert rows(RULE, example.source, regions=of_legacy) == expected_rows(example.source)
    with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        run(example.source)
    after = fixed(RULE, example.source, unsafe=True, regions=of_legacy)
    assert after != example.source
    run(after)


@pytest.mark.parametrize(
    ("call", "before", "scenarios"),
    [
        ("torch.cuda.amp.autocast()", AMBIENT, ("autocast-bf16", "bf16", "bf16-mixed-params")),
        ("torch.cuda.amp.autocast(True)", AMBIENT, ("autocast-bf16", "bf16", "bf16-mixed-params")),
        ("torch.cuda.amp.autocast(enabled=flag)", AMBIENT, ("autocast-bf16", "bf16", "bf16-mixed-params")),
        ("torch.cpu.amp.autocast()", AMBIENT, ("autocast-fp16", "fp16")),
        ("torch.cuda.amp.autocast()", ALL_OFF, ("autocast-bf16", "bf16", "bf16-mixed-params")),
        ("torch.cuda.amp.autocast()", (Ambient(BFLOAT16),) * len(SCENARIOS), None),
    ],
)
def test_scenarios(call: str, before: Autocast, scenarios: tuple[str, ...] | None) -> None:
    (finding,) = findings(RULE, case(call), regions=regions(before))
    assert finding.scenarios == (scenarios or tuple(s.name for s in SCENARIOS[1:]))
    assert (finding.span.start.row, finding.span.start.column) == (2, 6)
    assert finding.severity.value == "warning"


@pytest.mark.parametrize(
    ("call", "before", "nested"),
    [
        ("torch.cuda.amp.autocast()", AMBIENT, False),
        ("torch.cuda.amp.autocast(dtype=torch.bfloat16)", AMBIENT, True),
        ("torch.cuda.amp.autocast(True, torch.bfloat16)", AMBIENT, True),
        ("torch.cuda.amp.autocast(enabled=False)", AMBIENT, True),
        ("torch.cuda.amp.autocast(False)", AMBIENT, True),
        ("torch.cuda.amp.autocast(**options)", AMBIENT, True),
        ("torch.cuda.amp.autocast()", (Ambient(FLOAT16),) * len(SCENARIOS), True),
        ("torch.cuda.amp.autocast()", (UNCERTAIN,) * len(SCENARIOS), True),
        ("torch.autocast('cuda')", AMBIENT, True),
        ("torch.amp.autocast('cuda')", AMBIENT, True),
    ],
)
def test_silent(call: str, before: Autocast, nested: bool) -> None:
    assert findings(RULE, case(call), regions=regions(before, nested=nested)) == []


def test_a_region_in_several_states_is_one_finding() -> None:
    def twice(source: Source) -> list[Region]:
        return [*regions()(source), *regions(ALL_OFF)(source)]

    assert rows(RULE, case("torch.cuda.amp.autocast()"), regions=twice) == [2]


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("torch.cuda.amp.autocast()", 'torch.cuda.amp.autocast(dtype=torch.get_autocast_dtype("cuda"))'),
        ("torch.cuda.amp.autocast(True)", 'torch.cuda.amp.autocast(True, dtype=torch.get_autocast_dtype("cuda"))'),
        ("torch.cpu.amp.autocast()", 'torch.cpu.amp.autocast(dtype=torch.get_autocast_dtype("cpu"))'),
    ],
)
def test_fix(call: str, after: str) -> None:
    assert fixed(RULE, case(call), unsafe=True, regions=regions()) == case(after)
    assert fixed(RULE, case(call), regions=regions()) == case(call)


def test_no_fix_where_autocast_is_off_around() -> None:
    (finding,) = findings(RULE, case("torch.cuda.amp.autocast()"), regions=regions(ALL_OFF))
    assert (finding.fix, finding.certainty.value) == (None, "likely")
    (finding,) = findings(RULE, case("torch.cuda.amp.autocast()"), regions=regions(), torch_version=(2, 3))
    assert finding.fix is None


def test_a_disabled_legacy_region_overwrites_the_dtype() -> None:
    """Why there is no fix inside one."""
    with torch.autocast("cpu", dtype=torch.float16), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cpu.amp.autocast(enabled=False):
            assert torch.get_autocast_dtype("cpu") is torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert torch.get_autocast_dtype("cpu") is torch.float16


@pytest.mark.parametrize("example", [case.example for case in (*bad(RULE), *good(RULE))])
def test_examples_under_the_inference(example: Example) -> None:
    source = source_of(example.source)
    facts = analyse(source, scenarios=SCENARIOS, device=example.device, torch_version=(2, 13))
    found = list(RULE.suspects(facts))
    assert [suspect.span.start.row for suspect in found] == expected_rows(example.source)
    assert all(example.scenario in suspect.scenarios for suspect in found)


def test_disabled_around_under_the_inference() -> None:
    """A module that switches autocast off, then opens a region of its own (a lookup-free quantizer did)."""
    code = (
        "import torch\nfrom torch.cuda.amp import autocast\n\n\nclass Quantizer(torch.nn.Module):\n"
        "    @autocast(enabled=False)\n    def forward(self, x):\n"
        "        with autocast():\n            return torch.mm(x, x)\n"
    )
    facts = analyse(source_of(code), scenarios=SCENARIOS, device="cuda", torch_version=(2, 13))
    (suspect,) = RULE.suspects(facts)
    assert suspect.span.start.row == 8
    assert suspect.scenarios == ("autocast-bf16", "bf16", "bf16-mixed-params")


def test_with_amp601_in_either_order() -> None:
    code = "import torch\nfrom torch.cpu.amp import autocast\n\n\ndef inner():\n"
    code += "    with autocast():\n        return torch.get_autocast_dtype('cpu')\n"
    deprecated = DeprecatedAmpApi()
    this_first = fixed(deprecated, fixed(RULE, code, unsafe=True, regions=regions()), regions=regions())
    that_first = fixed(RULE, fixed(deprecated, code), unsafe=True, regions=regions())
    together = fixed([deprecated, RULE], code, unsafe=True, regions=regions())
    assert 'torch.amp.autocast("cpu", dtype=torch.get_autocast_dtype("cpu"))' in this_first
    assert 'torch.amp.autocast("cpu", dtype=torch.bfloat16)' in that_first
    assert together in (this_first, that_first)
    dtypes = []
    for text in (code, this_first, that_first):
        namespace: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(ast.parse(text), "case", "exec"), namespace)
            with torch.autocast("cpu", dtype=torch.float16):
                dtypes.append(namespace["inner"]())
    assert dtypes == [torch.bfloat16, torch.float16, torch.bfloat16]


LOOP = """\
import torch
from torch import nn


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler()

    def fit(self, x: torch.Tensor):
        {around}
            with torch.cuda.amp.autocast():
                loss = self.net(x).sum()
        {backward}
        {step}
"""


@pytest.mark.parametrize(
    ("around", "backward", "step", "certainty"),
    [
        ("for _ in range(2):", "self.scaler.scale(loss).backward()", "self.scaler.step(self.optimizer)", "possible"),
        ("if x.is_cuda:", "loss.backward()", "self.optimizer.step()", "possible"),
        ("with torch.no_grad():", "loss.backward()", "self.optimizer.step()", "possible"),
        ("with torch.autocast('cuda'):", "loss.backward()", "self.optimizer.step()", "proven"),
        ("for _ in range(2):", "self.manual_backward(loss)", "self.optimizer.step()", "proven"),
        ("for _ in range(2):", "loss.backward()", "return loss", "proven"),
        ("for _ in range(2):", "return loss", "", "proven"),
    ],
)
def test_a_method_that_takes_the_training_step_runs_in_no_other_region(
    around: str, backward: str, step: str, certainty: str
) -> None:
    source = source_of(LOOP.format(around=around, backward=backward, step=step), "/project/module.py")
    facts = analyse(source, scenarios=SCENARIOS, device="cuda", torch_version=(2, 13))
    (suspect,) = RULE.suspects(facts)
    assert suspect.standing.certainty is not None
    assert suspect.standing.certainty.value == certainty
