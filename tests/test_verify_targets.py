"""From findings to what is run: owners, what a definition reaches, examples, and the lines that confirm a finding."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rule_examples import every_bad

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, find_scenario
from amplint.plugins import load_rules
from amplint.source import Source, SourceError
from amplint.verify.targets import EXAMPLE, MODULE, Outline, Target, claims_of, outline, target_named, targets_of

if TYPE_CHECKING:
    from amplint.finding import Finding
    from amplint.verify.job import Claim

PATH = Path("/project/model.py")
RULES = tuple(load_rules())
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def read(text: str, *, device: str = "cuda", pedantic: bool = False) -> tuple[Outline, list[Finding]]:
    """A file's outline and what ``check`` finds in it."""
    source = Source(PATH, (HEAD + text).encode())
    asked = frozenset(rule.code for rule in RULES)
    options = Options(RULES, DEFAULT_SCENARIOS, device, pedantic=pedantic, each_place=True, asked=asked)
    found = check_file(source, options).findings
    return outline(source), list(found)


def module(name: str, body: str = "return self.proj(x.float())", *, base: str = "nn.Module", more: str = "") -> str:
    """A class whose ``forward``, unless told otherwise, upcasts the operand of a Linear."""
    return (
        f"class {name}({base}):\n"
        "    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(8, 8)\n\n"
        f"    def forward(self, x):\n        {body}\n{more}\n\n"
    )


def example(name: str) -> str:
    return f"\n    @staticmethod\n    def amplint_example():\n        return {name}(), (torch.randn(2, 8),), {{}}\n"


WRITE = "def write(table, rows, ids):\n    return table.index_add_(0, ids, rows)\n\n\n"
CALLS_WRITE = "return write(torch.zeros(4, 8, device=x.device), x, torch.zeros(2, dtype=torch.long))"


def summary(targets: list[Target]) -> dict[str, list[tuple[str, int]]]:
    """By target: code and line of each finding, counted below the imports."""
    lines = HEAD.count("\n")
    return {
        str(target).partition("::")[2]: [(f.code, f.span.start.row - lines) for f in target.findings]
        for target in targets
    }


def test_a_class_owns_what_is_found_in_it_and_the_others_are_left_alone() -> None:
    found, findings = read(module("Bad") + module("Good", "return self.proj(x)"))
    assert summary(targets_of(PATH, found, findings)) == {"Bad": [("AMP102", 7)]}
    assert all(target.runnable for target in targets_of(PATH, found, findings))


def test_a_finding_of_a_function_belongs_to_the_classes_that_name_it() -> None:
    found, findings = read(WRITE + module("Uses", CALLS_WRITE + " + x.float() @ x.float()") + module("Other"))
    assert [target.findings[-1].code for target in targets_of(PATH, found, findings)] == ["AMP105", "AMP102"]
    assert summary(targets_of(PATH, found, findings)) == {
        "Uses": [("AMP102", 11), ("AMP105", 2)],
        "Other": [("AMP102", 20)],
    }


def test_a_function_that_no_class_with_a_finding_names_is_a_target_of_its_own() -> None:
    found, findings = read(WRITE + module("Good", CALLS_WRITE))
    (target,) = targets_of(PATH, found, findings)
    assert (target.name, target.runnable) == ("write", True)


def test_a_finding_outside_of_every_definition_is_kept() -> None:
    found, findings = read("print(torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.bfloat16))\n")
    targets = targets_of(PATH, found, findings)
    assert sum(len(target.findings) for target in targets) == len(findings)
    assert all(target.name == MODULE and not target.runnable for target in targets)


def test_what_a_definition_reaches() -> None:
    text = (
        "def leaf(x):\n    return x\n\ndef middle(x):\n    return leaf(x)\n\nclass Base(nn.Module):\n"
        "    def forward(self, x):\n        return middle(x)\n\nclass Top(Base):\n    pass\n\nclass Alone(nn.Module):\n"
        "    def leaf(self, x):\n        return self.middle(x)\n\ndef loop(x):\n    return loop(x)\n"
    )
    found, _ = read(text)
    assert found.reached("Top") == {"Base", "middle", "leaf"}
    assert found.reached("middle") == {"leaf"}
    assert found.reached("Alone") == set()
    assert found.reached("loop") == set()
    assert found.reached("nothing") == set()


def test_a_class_with_an_example_answers_for_the_classes_it_is_made_of() -> None:
    block = module("Block")
    plain, findings = read(block + module("Model", "return Block()(x)"))
    assert summary(targets_of(PATH, plain, findings)) == {"Block": [("AMP102", 7)]}
    with_example, findings = read(block + module("Model", "return Block()(x)", more=example("Model")))
    assert summary(targets_of(PATH, with_example, findings)) == {"Model": [("AMP102", 7)], "Block": [("AMP102", 7)]}


def test_a_class_with_an_example_is_a_target_without_findings_too() -> None:
    found, findings = read(module("Good", "return self.proj(x)", more=example("Good")))
    assert summary(targets_of(PATH, found, findings)) == {"Good": []}


def test_the_example_of_a_file_comes_first_and_silences_no_class() -> None:
    text = WRITE + module("Bad", f"x = self.proj(x.float()); {CALLS_WRITE}") + module("Own", more=example("Own"))
    found, findings = read(text + "def amplint_example():\n    return Bad(), (torch.randn(2, 8),), {}\n")
    targets = targets_of(PATH, found, findings)
    assert summary(targets) == {
        EXAMPLE: [("AMP105", 2), ("AMP102", 11), ("AMP102", 20)],
        "Own": [("AMP102", 20)],
        "Bad": [("AMP102", 11), ("AMP105", 2)],
    }
    assert targets[0].name is None


@pytest.mark.parametrize("name", ["Outer", "Outer.Inner", "Outer.Inner.Deepest"])
def test_nested_classes_go_by_their_qualified_names(name: str) -> None:
    text = (
        "class Outer(nn.Module):\n    class Inner(nn.Module):\n        class Deepest(nn.Module):\n"
        "            def forward(self, x):\n                return F.linear(x.float(), x)\n"
    )
    found, findings = read(text)
    assert list(found.classes) == ["Outer", "Outer.Inner", "Outer.Inner.Deepest"]
    assert [target.name for target in targets_of(PATH, found, findings)] == (["Outer"] if findings else [])
    assert found.owner(HEAD.count("\n") + 5) == ("Outer", True)
    target = target_named(PATH, found, name, findings)
    assert target is not None
    assert (target.name, target.runnable, list(target.findings)) == (name, True, findings)


def test_classes_below_conditions_and_attempts_are_found_and_those_in_functions_are_not() -> None:
    text = (
        "if torch.cuda.is_available():\n    class A(nn.Module): pass\nelse:\n    class B(nn.Module): pass\n"
        "try:\n    class C(nn.Module): pass\nexcept ImportError:\n    class D(nn.Module): pass\n"
        "def make():\n    class E(nn.Module): pass\n    return E\n"
    )
    found, _ = read(text)
    assert list(found.classes) == ["A", "B", "C", "D"]
    assert list(found.functions) == ["make"]


def test_one_target_by_name() -> None:
    text = WRITE + module("Uses", CALLS_WRITE) + module("Bad")
    found, findings = read(text)
    named = {name: target_named(PATH, found, name, findings) for name in ("Uses", "Bad", "write", "forward", "")}
    assert {name: target and [f.code for f in target.findings] for name, target in named.items()} == {
        "Uses": ["AMP105"],
        "Bad": ["AMP102"],
        "write": ["AMP105"],
        "forward": None,
        "": None,
    }
    assert target_named(PATH, found, EXAMPLE, findings) is None
    outside = target_named(PATH, found, MODULE, findings)
    assert outside is not None
    assert outside.findings == ()


def test_a_decorator_belongs_to_its_definition() -> None:
    found, _ = read("@torch.no_grad()\ndef f(x):\n    return x\n\n@torch.jit.script\nclass A: pass\n")
    first = HEAD.count("\n") + 1
    assert found.owner(first) == ("f", False)
    assert found.owner(first + 4) == ("A", True)
    assert found.owner(first + 3) == (None, False)


@pytest.mark.parametrize("data", [b"def f(:\n", b"x = '\xff'\n", b"x = 1\x00\n", b"# coding: nonsense\n"])
def test_what_is_no_python_says_so(data: bytes) -> None:
    with pytest.raises(SourceError):
        outline(Source(PATH, data))


FUNCTION = """\
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad
"""


def lines_of(claim: Claim, text: str) -> list[str]:
    """What the claim's lines say, each without indentation."""
    rows = (HEAD + text).splitlines()
    return [row.strip() for number, row in enumerate(rows, 1) if claim.covers(str(PATH), number) and row.strip()]


def claim_of(code: str, found: Outline, findings: list[Finding]) -> Claim:
    claims = dict(zip((f.code for f in findings), claims_of(findings, found), strict=True))
    return claims[code]


def test_a_finding_at_a_header_is_confirmed_by_what_it_holds() -> None:
    found, findings = read(FUNCTION)
    forward, backward = claim_of("AMP201", found, findings), claim_of("AMP202", found, findings)
    assert forward.governs
    assert backward.governs
    assert lines_of(forward, FUNCTION) == ["ctx.save_for_backward(x, w)", "return x @ w"]
    assert lines_of(backward, FUNCTION) == [
        "x, w = ctx.saved_tensors",
        "return grad @ w.t(), x.t() @ grad",
    ]


def test_a_finding_at_a_with_is_confirmed_by_its_block_only() -> None:
    text = (
        "def f(x, layer):\n    with torch.cuda.amp.autocast():\n        y = layer(x)\n        y = y + 1\n"
        "    return layer(y)\n"
    )
    found, findings = read(text)
    claim = claim_of("AMP601", found, findings)
    assert claim.governs
    assert lines_of(claim, text) == ["y = layer(x)", "y = y + 1"]


def test_a_finding_in_a_statement_is_confirmed_by_all_lines_of_it_and_no_other() -> None:
    text = (
        "def write(rows, ids):\n    table = torch.zeros(4, 8)\n    table.index_add_(\n        0,\n        ids,\n"
        "        rows,\n    )\n    return table\n"
    )
    found, findings = read(text)
    claim = claim_of("AMP105", found, findings)
    assert not claim.governs
    assert lines_of(claim, text) == ["table.index_add_(", "0,", "ids,", "rows,", ")"]
    assert not claim.covers("/project/other.py", claim.rows[0][0])
    assert claim.scenarios == next(f.scenarios for f in findings if f.code == "AMP105")


ENCODER = """\
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.norm = nn.LayerNorm(8)

    def forward(self, x, padding_mask):
        x = self.norm(x)
        x = self.encoder(
            x,
            src_key_padding_mask=padding_mask,
        )
        return self.norm(x)


class Other(nn.Module):
    def forward(self, x, encoder):
        return self.encoder(x)
"""


def test_a_finding_where_a_layer_is_made_is_confirmed_where_its_class_calls_it() -> None:
    found, findings = read(ENCODER, device="cpu", pedantic=True)
    assert lines_of(claim_of("AMP108", found, findings), ENCODER) == [
        "self.encoder = nn.TransformerEncoder(layer, 1)",
        "x = self.encoder(",
        "x,",
        "src_key_padding_mask=padding_mask,",
        ")",
    ]


def examples() -> list[Source]:
    """Every bad example of every rule, and the incidents."""
    texts = [case.example.source for case in every_bad()]
    texts += [path.read_text() for path in sorted(Path(__file__).parent.parent.glob("fixtures/incidents/*/*.py"))]
    return [Source(PATH.with_name(f"example_{n}.py"), text.encode()) for n, text in enumerate(texts)]


def test_no_finding_is_lost_and_every_claim_lies_where_its_finding_does() -> None:
    """Over the rules' examples and the incidents: each finding has a target, by path and by name, and lines."""
    everything = tuple(s for name in ("bf16-mixed-params", "fsdp-bf16") if (s := find_scenario(name)) is not None)
    options = Options(RULES, tuple(dict.fromkeys((*DEFAULT_SCENARIOS, *everything))))
    seen = 0
    for source in examples():
        findings = [f for f in check_file(source, options).findings if not f.code.startswith("AMP9")]
        found = outline(source)
        targets = targets_of(source.path, found, findings)
        assert {f.fingerprint for t in targets for f in t.findings} == {f.fingerprint for f in findings}
        assert len({str(target) for target in targets}) == len(targets)
        for target in targets:
            named = target_named(source.path, found, target.name or EXAMPLE, findings)
            assert named is not None
            assert (named.name, named.runnable) == (target.name, target.runnable)
            assert {f.fingerprint for f in target.findings} <= {f.fingerprint for f in named.findings}
        for finding, claim in zip(findings, claims_of(findings, found), strict=True):
            seen += 1
            assert claim.fingerprint == finding.fingerprint
            assert all(first <= last for first, last in claim.rows)
            if claim.governs:
                (rows,) = claim.rows
                assert any(isinstance(n, ast.stmt) and n.lineno == rows[0] for n in ast.walk(found.tree))
                assert rows[0] > finding.span.start.row
            else:
                assert claim.covers(str(source.path), finding.span.start.row)
    assert seen > 50
