"""Tests of Lightning's ``precision`` that know one of a precision's names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts

ALIASES: dict[object, str] = {16: "16-mixed", "16": "16-mixed", "bf16": "bf16-mixed"}
"""Short names of mixed precision and what Lightning 2 turns them into (``lightning/fabric/plugins/precision/
precision.py``): both may be passed, ``trainer.precision`` has the long one."""
_OTHER_NAMES = ("-mixed", "-true", "fp16")
"""The long names, and one that Lightning does not know: the file has names of its own."""
_SETTING = "precision"
_PACKAGES = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
_OPERATORS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def short_names_alone(facts: FileFacts) -> Iterator[tuple[ast.Compare, object]]:
    """Comparisons of a precision with a short name, and the name, in files that use Lightning and nowhere have a long
    one. Silent where the command line offers a choice of names."""
    tree = facts.source.tree
    if not any(map(_imports_lightning, ast.walk(tree))) or any(map(_has_other_names, ast.walk(tree))):
        return
    passed = {ast.unparse(k.value) for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg == _SETTING}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], _OPERATORS):
            continue
        short = [value for value in _constants(node.comparators[0]) if value in ALIASES]
        if short and _is_precision(node.left, passed):
            yield node, short[0]


def _imports_lightning(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] in _PACKAGES
    return isinstance(node, ast.Import) and any(a.name.partition(".")[0] in _PACKAGES for a in node.names)


def _has_other_names(node: ast.AST) -> bool:
    """A long name, or one of the file's own, as a string; or ``choices=[16, 32]``, which a command line offers."""
    if isinstance(node, ast.keyword):
        return node.arg == "choices" and any(value in ALIASES for value in _constants(node.value))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_OTHER_NAMES)


def _is_precision(node: ast.expr, passed: set[str]) -> bool:
    """Whether an expression is a trainer's precision: its attribute, or what the file passes for it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "int"):
        return len(node.args) == 1 and _is_precision(node.args[0], passed)
    return (isinstance(node, ast.Attribute) and node.attr == _SETTING) or ast.unparse(node) in passed


def _constants(node: ast.expr) -> list[object]:
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [i.value for i in items if isinstance(i, ast.Constant) and type(i.value) in (int, str)]
