"""Whether code asks for the 16-bit dtype that it names: by a test for a dtype, or by an option that its caller sets."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

OTHER = {"float16": "bfloat16", "bfloat16": "float16"}
_OF_TORCH = {
    "float16": "float16",
    "half": "float16",
    "HalfTensor": "float16",
    "bfloat16": "bfloat16",
    "BFloat16Tensor": "bfloat16",
    "float32": "float32",
    "float": "float32",
    "float64": "float64",
    "double": "float64",
}
_SETTINGS = {
    "float16": re.compile(r"(?<!b)(fp|float|f)_?16|^half$|^16(-|$)"),
    "bfloat16": re.compile(r"bf(p|loat)?_?16"),
    "float32": re.compile(r"(fp|float)_?32|^32(-|$)"),
}
"""How strings call a dtype: ``"fp16"``, ``"bf16-mixed"``, ``"torch.float16"``."""
_OF_TENSORS = frozenset(
    ("training", "is_cuda", "is_cpu", "is_mps", "requires_grad", "is_leaf", "is_sparse", "is_nested")
)
"""What a module or tensor says of itself, which is no option."""


def mentioned(node: ast.AST, around: Surroundings) -> frozenset[str]:
    """The dtypes that an expression names: torch's, and strings that are settings, but not the keys of options."""
    found: set[str] = set()
    for part in ast.walk(node):
        name = around.torch_name(part).rpartition(".")[2]
        if name in _OF_TORCH:
            found.add(_OF_TORCH[name])
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and not _is_key(part, around):
            found.update(dtype for dtype, words in _SETTINGS.items() if words.search(part.value.lower()))
    return frozenset(found)


def _is_key(node: ast.Constant, around: Surroundings) -> bool:
    """Whether a string says where something is kept: ``options["fp16"]``, ``options.get("fp16")``."""
    parent = around.parent(node)
    return isinstance(parent, ast.Subscript) or (isinstance(parent, ast.Call) and node in parent.args)


def asks(test: ast.expr, answer: bool, dtype: str, around: Surroundings) -> bool:
    """Whether a test, with the answer that leads to a cast to ``dtype``, shows that the cast is meant for what comes.

    It asks for that dtype; or the other 16-bit dtype went another way, or is what is replaced; or all that is not
    bfloat16 becomes bfloat16, which has float32's range; or it asks for an option, which whoever calls this sets.
    """
    named = mentioned(test, around)
    option = not named and is_option(test, around)
    this, other = dtype in named, OTHER[dtype] in named
    if not _holds(test, answer):
        return (other and not this) or (this and dtype == "bfloat16") or option
    if this:
        return not other
    if other:
        return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.Is))
    return option or (not named and any(map(around.is_dtype, _expressions(test))))


def is_option(test: ast.expr, around: Surroundings) -> bool:
    """Whether a test asks for the truth of an argument, or of an attribute or item that some object was given."""
    if isinstance(test, ast.Attribute):
        return test.attr not in _OF_TENSORS and not around.torch_name(test)
    if isinstance(test, ast.Subscript):
        return isinstance(test.slice, ast.Constant) and isinstance(test.slice.value, str)
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Attribute) and test.func.attr == "get" and not around.is_imported(test.func)
    function = around.function(test)
    spec = function.args if function is not None else None
    return (
        isinstance(test, ast.Name)
        and spec is not None
        and any(argument.arg == test.id for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    )


def names_both(test: ast.expr, answer: bool, around: Surroundings) -> bool:
    """Whether a test lets float16 and bfloat16 through alike: ``dtype in (torch.float16, torch.bfloat16)``."""
    return _holds(test, answer) and mentioned(test, around) >= OTHER.keys()


def _expressions(test: ast.expr) -> list[ast.expr]:
    return [part for part in ast.walk(test) if isinstance(part, ast.expr)]


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
