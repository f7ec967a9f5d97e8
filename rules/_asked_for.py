"""Whether code asks for the 16-bit dtype that it names: by a test, or by what the code around calls itself.

A fixed cast and a wanted one are the same program: only what its author wrote tells them apart, and of that the tests
come first. Names, comments and docstrings only ever silence a finding, so a name that is not known here costs a false
alarm at most, and none of them is a library's.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ._surroundings import Surroundings

WORDS = {
    "float16": re.compile(r"(?<!b)fp_?16|(?<!b)float_?16|(?<!b)half|(?<![b\d])f16"),
    "bfloat16": re.compile(r"bf_?16|bfloat_?16|bfp_?16"),
}
_DOCUMENTED = {
    "float16": re.compile(r"(?<!b)fp_?16|(?<!b)float_?16|half[- ]precision"),
    "bfloat16": WORDS["bfloat16"],
}
OTHER = {"float16": "bfloat16", "bfloat16": "float16"}
_SIXTEEN = re.compile(r"\b16\b")
_ABOUT_DTYPES = re.compile(r"dtype|precision|amp\b")
_WIDE = re.compile(r"float32|fp32|float\b|float64|double")
_QUANTIZED = re.compile(r"quant|fp8|float8|fp4|int4|int8|8bit|4bit")
_ON_PURPOSE = re.compile(
    r"fp_?16|float_?16|half|bf_?16|bfloat|quant|compress|pack|precision|dtype|autocast|export|fp8|float8|fp4|int4|int8"
    r"|(^|_)(test|tests|bench|benchmark|warm_?up|dummy|profile|reference|emulated?|check|demo|main)(_|$)"
)
"""What a function or a file calls itself that is there to cast, or to try something out."""
_CLASS_ON_PURPOSE = re.compile(r"fp_?16|float_?16|half|bf_?16|bfloat|precision|compress|^Test|Test$", re.IGNORECASE)
_REASONS = re.compile(
    r"\b(because|since|save|avoid|consisten\w*|original|requires?|supports?|only|expects?|purpose|intentional\w*|match\w*)\b"
)
_TEST_FILE = re.compile(r"^test_|_tests?$|^(conftest|testing_utils)$")
_TEST_FOLDERS = frozenset(("test", "tests", "benchmark", "benchmarks"))
INNER_FOLDERS = 3
"""How many folders above a file say what it is for."""


def asks(test: ast.expr, answer: bool, dtype: str) -> bool:
    """Whether a test, with the answer that leads to a cast to ``dtype``, shows that the cast is meant for what comes.

    It asks for that dtype; or the other 16-bit dtype went another way, or is what is replaced; or all that is not
    bfloat16 becomes bfloat16, which has float32's range.
    """
    text = _SIXTEEN.sub("fp16", ast.unparse(test).lower())
    this, other = bool(WORDS[dtype].search(text)), bool(WORDS[OTHER[dtype]].search(text))
    if _holds(test, answer) and _QUANTIZED.search(text) and not (this and other):
        return True
    if not _holds(test, answer):
        return (other and not this) or (this and dtype == "bfloat16")
    if this:
        return not other
    if other:
        return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.Is))
    return bool(_ABOUT_DTYPES.search(text)) and not _WIDE.search(text)


def names_both(test: ast.expr, answer: bool) -> bool:
    """Whether a test lets float16 and bfloat16 through alike: ``dtype in (torch.float16, torch.bfloat16)``."""
    text = ast.unparse(test).lower()
    return _holds(test, answer) and all(words.search(text) for words in WORDS.values())


def shared_flags(tree: ast.Module) -> dict[str, ast.expr]:
    """The flags named after float16 that hold in bfloat16 runs too, each with the test that shows it.

    A file that asks for ``fp16 and not bf16`` says that ``fp16`` alone does not tell.
    """
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            negated = [v.operand for v in node.values if isinstance(v, ast.UnaryOp) and isinstance(v.op, ast.Not)]
            if any(WORDS["bfloat16"].search(_last(value).lower()) for value in negated):
                flags = (_last(value) for value in node.values if not isinstance(value, ast.UnaryOp))
                found.update({flag: node for flag in flags if WORDS["float16"].search(flag.lower())})
    return found


def shared_test(tests: list[tuple[ast.expr, bool]], shared: dict[str, ast.expr]) -> ast.expr | None:
    """Where a flag that leads to a cast to float16 was told apart from bfloat16's, though none of its tests does."""
    if any(WORDS["bfloat16"].search(ast.unparse(test).lower()) for test, _ in tests):
        return None
    flags = (_last(part) for test, answer in tests if answer for part in _parts(test))
    return next((shared[flag] for flag in flags if flag in shared), None)


def _parts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) else [test]


def _last(node: ast.expr) -> str:
    """The last name of ``cfg.common.fp16``, ``cfg["fp16"]`` or ``fp16``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return node.id if isinstance(node, ast.Name) else ""


def _holds(test: ast.expr, answer: bool) -> bool:
    """Whether what a test names is so: ``a == b`` answered with yes, ``a != b`` with no."""
    unequal = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn))
    return answer is not unequal


def tests_of(around: Surroundings, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The tests that decide whether a node is evaluated; of one kept in a variable what the variable holds."""
    for test, answer in around.tests(node):
        value = around.only_value(test) if isinstance(test, ast.Name) else None
        yield test, answer
        if value is not None:
            yield value, answer


def is_quantized(around: Surroundings, node: ast.Call) -> bool:
    """Whether a cast value goes straight into a function that quantizes it, or in the next statement: its kernels take
    one dtype."""
    parent = around.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        return bool(_QUANTIZED.search(ast.unparse(parent.func)))
    statement, following = around.statement(node)
    if following is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    calls = (n for n in ast.walk(following) if isinstance(n, ast.Call) and "quantize" in ast.unparse(n.func))
    return any(isinstance(argument, ast.Name) and argument.id == name for call in calls for argument in call.args)


def is_explained(around: Surroundings, node: ast.Call, dtype: str, lines: Sequence[str]) -> bool:
    """Whether a comment at a statement, or right above it, names its dtype alone and gives a reason."""
    row = (around.statement(node)[0] or node).lineno
    comments = [lines[row - 1].partition("#")[2]]
    while row > 1 and lines[row - 2].lstrip().startswith("#"):
        row -= 1
        comments.append(lines[row - 1])
    text = " ".join(comments).lower()
    named = _DOCUMENTED[dtype].search(text) and not _DOCUMENTED[OTHER[dtype]].search(text)
    return bool(named and _REASONS.search(text))


def is_on_purpose(around: Surroundings, node: ast.AST, dtype: str, path: Path) -> bool:
    """Whether a function, class or file around says by its name that it is there to cast, or that it is a test, or a
    function's docstring names the dtype."""
    if (
        _TEST_FILE.search(path.stem)
        or _ON_PURPOSE.search(path.stem.lower())
        or _TEST_FOLDERS & set(path.parent.parts[-INNER_FOLDERS:])
    ):
        return True
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef)):
            documentation = ast.get_docstring(ancestor, clean=False) or ""
            if _ON_PURPOSE.search(ancestor.name.lower()) or _DOCUMENTED[dtype].search(documentation.lower()):
                return True
        if isinstance(ancestor, ast.ClassDef) and _CLASS_ON_PURPOSE.search(ancestor.name):
            return True
    return False
