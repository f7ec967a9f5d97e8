"""Tests of Lightning's ``precision`` that know one of a precision's names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.facts import FileFacts

ALIASES: dict[object, str] = {16: "16-mixed", "16": "16-mixed", "bf16": "bf16-mixed"}
"""Short names of mixed precision and what Lightning 2 turns them into (``lightning/fabric/plugins/precision/
precision.py``): both may be passed, ``trainer.precision`` has the long one."""
_OTHER_NAMES = (b"-mixed", b"-true", b'"fp16"', b"'fp16'")
"""The long names, and one that Lightning does not know: the file has names of its own."""
_PACKAGES = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
_OPERATORS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def short_names_alone(facts: FileFacts) -> Iterator[tuple[ast.Compare, object]]:
    """Comparisons of a precision with a short name, and the name, in files that use Lightning and nowhere have a long
    one. Silent where the command line offers a choice of names, and within Lightning."""
    tree = facts.source.tree
    if any(mark in facts.source.data for mark in _OTHER_NAMES) or _PACKAGES & set(facts.path.parts):
        return
    if not any(map(_imports_lightning, ast.walk(tree))) or any(map(_offers_choice, ast.walk(tree))):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], _OPERATORS):
            continue
        short = [value for value in _constants(node.comparators[0]) if value in ALIASES]
        if short and _is_precision(node.left):
            yield node, short[0]


def _imports_lightning(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] in _PACKAGES
    return isinstance(node, ast.Import) and any(a.name.partition(".")[0] in _PACKAGES for a in node.names)


def _offers_choice(node: ast.AST) -> bool:
    """``parser.add_argument("--precision", choices=[16, 32])``."""
    if not isinstance(node, ast.Call) or not any(keyword.arg == "choices" for keyword in node.keywords):
        return False
    return any(isinstance(a, ast.Constant) and str(a.value).endswith("precision") for a in node.args)


def _is_precision(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "int"):
        return len(node.args) == 1 and _is_precision(node.args[0])
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.endswith("precision") and "mixed" not in name


def _constants(node: ast.expr) -> list[object]:
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [i.value for i in items if isinstance(i, ast.Constant) and type(i.value) in (int, str)]
