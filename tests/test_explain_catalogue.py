"""The families of error texts: whole, told apart, and led back to by every text that the documentation shows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from amplint.explain.catalogue import KINDS, NEEDS, Family, families, recognise
from amplint.explain.literals import longest_literal
from amplint.explain.spelling import dtype_of
from amplint.finding import Severity
from amplint.plugins import load_rules
from amplint.rule_base import documentation

FAMILIES = list(families().values())
RULES = [rule for rule in load_rules() if not rule.code.startswith("AMP9")]
MIXED = "mat1 and mat2 must have the same dtype, but got Float and BFloat16"

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@each_family
def test_examples_belong_to_their_family_and_use_every_pattern(family: Family) -> None:
    for example in family.examples:
        (match,) = recognise(f"noise before\nRuntimeError: {example}\nnoise after")
        assert (match.family, match.kind, match.codes) == (family.name, family.kind, family.codes)
    unused = [p for p in family.patterns if not any(family.compiled(p).search(text) for text in family.examples)]
    assert unused == []


@each_family
def test_family_is_whole(family: Family) -> None:
    assert family.kind in KINDS
    assert family.needs in NEEDS
    assert set(re.findall(r"\{(\w+)\}", family.says)) <= {*family.roles, "op", "argument", "other"}
    assert all(longest_literal(pattern) for pattern in family.patterns)
    assert set(family.codes) <= {rule.code for rule in RULES}
    assert {remedy.rule for remedy in family.remedies} <= {None, *family.codes}
    assert family.remedies
    for narrowing in family.narrowing:
        assert {role for role, _ in narrowing.when} <= family.roles.keys()


def test_code_of_remedies_is_python() -> None:
    """Commands and pieces of JSON apart."""
    codes = [
        r.code
        for family in FAMILIES
        for r in family.remedies
        if r.code and not r.code.startswith(("amplint ", "CUDA_", '"'))
    ]
    assert len(codes) > 60
    for code in codes:
        ast.parse(f"{code} ..." if code.endswith(":") else code)


def test_literals_are_part_of_every_match() -> None:
    assert longest_literal(r"(?:abc|defghijk) xyz") == " xyz"
    assert longest_literal(r"colou?r and more") == "r and more"
    assert longest_literal(r"[a-z]{3}ab\(\)c{role}de") == "ab()c"
    assert longest_literal(r"one|another") == ""
    for family in FAMILIES:
        for pattern, literal in zip(family.patterns, family.literals, strict=True):
            matches = [m[0] for text in family.examples for m in family.compiled(pattern).finditer(text)]
            assert all(literal in match for match in matches)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        ("Half", "float16"),
        ("at::Half", "float16"),
        ("c10::Half", "float16"),
        ("struct c10::Half", "float16"),
        ("torch.cuda.HalfTensor", "float16"),
        ("torch.HalfTensor", "float16"),
        ("torch.float16", "float16"),
        ("c10::BFloat16", "bfloat16"),
        ("CUDABFloat16Type", "bfloat16"),
        ("torch.mps.BFloat16Tensor", "bfloat16"),
        ("float", "float32"),
        ("torch.cuda.FloatTensor", "float32"),
        ("double", "float64"),
        ("long int", "int64"),
        ("long long", "int64"),
        ("unsigned char", "uint8"),
        ("c10::complex<float>", "complex64"),
        ("Float8_e4m3fn", "float8_e4m3fn"),
        ("c10::Float8_e5m2", "float8_e5m2"),
        ("torch.Tensor", None),
        ("floats", None),
    ],
)
def test_spellings(spelling: str, dtype: str | None) -> None:
    assert dtype_of(spelling) == dtype


WORDINGS = {
    "fill-overflow": (
        "value cannot be converted to type at::Half without overflow: -1e+09",
        "value cannot be converted to type c10::Half without overflow",
    ),
    "conv-operands": (
        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "Input type (struct c10::Half) and bias type (float) should be the same",
    ),
    "matmul-operands": (
        "expected mat1 and mat2 to have the same dtype, but got: struct c10::Half != float",
        "expected m1 and m2 to have the same dtype, but got: c10::Half != float",
    ),
    "scalar-type": (
        "Expected object of scalar type Half but got scalar type Float for argument #2 'mat2' in call to _th_mm",
        "expected scalar type Half but found Float",
    ),
}


@pytest.mark.parametrize("family", WORDINGS)
def test_old_and_new_wordings_are_one_family(family: str) -> None:
    (old,), (new,) = (recognise(text) for text in WORDINGS[family])
    assert (old.family, old.dtypes) == (new.family, new.dtypes)
    assert old.family == family


def how_it_shows() -> list[tuple[str, str]]:
    """(code, error text) of the documentation of every rule; what is silent has none, and raises nothing."""
    shown = []
    for rule in RULES:
        block = re.search(r"How it shows\n-+\n```text\n(.*?)```", documentation(rule), re.DOTALL)
        if block is None:
            assert rule.severity is Severity.WARNING, rule.code
            continue
        lines = re.sub(r"\n(?!\w+(?:Error|Warning):)", " ", block[1].strip())
        shown += [(rule.code, line) for line in lines.split("\n")]
    return shown


@pytest.mark.parametrize(("code", "text"), how_it_shows())
def test_texts_in_the_rules_documentation_lead_back_to_the_rule(code: str, text: str) -> None:
    assert code in {found for match in recognise(text) for found in match.codes}


def test_errors_come_before_warnings_and_causes_before_consequences() -> None:
    text = (
        "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.\n"
        f"step 3 loss: nan\nRuntimeError: {MIXED}\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "ValueError: Attempting to unscale FP16 gradients.\n"
    )
    assert [match.family for match in recognise(text)] == [
        "linear-operands",
        "unscale-half-gradients",
        "deprecated-amp-api",
        "nan-loss",
    ]


def test_one_error_of_many_ranks_is_one_match() -> None:
    text = "".join(f"[rank{rank}]: RuntimeError: {MIXED}\n" for rank in range(8)) + f"E   RuntimeError: {MIXED}\n"
    (match,) = recognise(text)
    assert match.text == f"RuntimeError: {MIXED}"
    assert match.dtypes == (("input", "float32"), ("weight", "bfloat16"))


def test_a_text_broken_by_the_terminal_is_put_together() -> None:
    (match,) = recognise("│ RuntimeError: mat1 and mat2 must have the same │\n│ dtype, but got Float and BFloat16 │\n")
    assert match.family == "linear-operands"


def test_recognition_needs_no_torch_and_no_time() -> None:
    program = (
        "import sys, time; from amplint.explain.catalogue import recognise; start = time.process_time()\n"
        "text = 'INFO step 1 loss 0.3 lr 1e-4 ok\\n' * 100_000 + 'loss' + ' ' * 100_000 + '| ' * 100_000\n"
        "assert not recognise(text)\n"
        f"assert recognise(text + {MIXED!r})\n"
        "assert time.process_time() - start < 5; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
