"""Tests of Lightning's ``precision`` that know one of a precision's names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.packages import package_of

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
    if not any(map(_imports_lightning, nodes_of_kind(tree, ast.Import, ast.ImportFrom))):
        return
    if any(map(_has_other_names, nodes_of_kind(tree, ast.keyword, ast.Constant))):
        return
    around = Surroundings.of(tree)
    known = set(_precisions(tree, around))
    for node in nodes_of_kind(tree, ast.Compare):
        if len(node.ops) != 1 or not isinstance(node.ops[0], _OPERATORS):
            continue
        short = [value for value in _constants(node.comparators[0]) if value in ALIASES]
        if short and _is_precision(node.left, known):
            yield node, short[0]


def _imports_lightning(node: ast.Import | ast.ImportFrom) -> bool:
    return any(package_of(alias, node) in _PACKAGES for alias in node.names)


def _precisions(tree: ast.Module, around: Surroundings) -> Iterator[str]:
    """What a file passes to Lightning as the precision, and the attribute of each trainer that it makes or takes."""
    for node in nodes_of_kind(tree, ast.Call, ast.arg):
        if isinstance(node, ast.Call) and _is_of_lightning(node.func, around):
            yield from (ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg == _SETTING)
            made = around.parent(node)
            yield from (f"{ast.unparse(t)}.{_SETTING}" for t in (made.targets if isinstance(made, ast.Assign) else ()))
        elif isinstance(node, ast.arg) and node.annotation is not None and _is_of_lightning(node.annotation, around):
            yield f"{node.arg}.{_SETTING}"


def _is_of_lightning(node: ast.expr, around: Surroundings) -> bool:
    imported = around.imported(node)
    return imported is not None and package_of(*imported) in _PACKAGES


def _has_other_names(node: ast.keyword | ast.Constant) -> bool:
    """A long name, or one of the file's own, as a string; or ``choices=[16, 32]``, which a command line offers."""
    if isinstance(node, ast.keyword):
        return node.arg == "choices" and any(value in ALIASES for value in _constants(node.value))
    return isinstance(node.value, str) and node.value.endswith(_OTHER_NAMES)


def _is_precision(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression is a trainer's precision: one that is ``known``, or that of a module's own ``trainer``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "int"):
        return len(node.args) == 1 and _is_precision(node.args[0], known)
    text = ast.unparse(node)
    return text in known or text.endswith(f".trainer.{_SETTING}")


def _constants(node: ast.expr) -> list[object]:
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [i.value for i in items if isinstance(i, ast.Constant) and type(i.value) in (int, str)]
