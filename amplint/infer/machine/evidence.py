"""What a file passes by keyword: the layers that its factories choose for a parameter without a default."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import unite
from amplint.infer.lattice.values import UNKNOWN, Partial, Value
from amplint.infer.names.definitions import Function
from amplint.infer.names.texts import is_class
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from amplint.infer.names.namespace import Namespace

MAX_CHOICES = 6
"""Different values of one keyword that are looked at."""


@lru_cache(maxsize=8)
def _keywords(tree: ast.Module) -> dict[str, dict[str, ast.expr]]:
    """For each keyword the names, plain or dotted, that calls outside classes pass by it, with one expression each."""
    found: dict[str, dict[str, ast.expr]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            continue
        for node in nodes_below(statement):
            if not isinstance(node, ast.keyword) or node.arg is None:
                continue
            if isinstance(node.value, (ast.Name, ast.Attribute)):
                found.setdefault(node.arg, {})[_dotted(node.value)] = node.value
    return found


def _dotted(node: ast.expr) -> str:
    """A plain or dotted name as text; of an attribute of anything else, what tells it from all others."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else f"{id(node)}")
    return ".".join(reversed(parts))


def passed_by_keyword(tree: ast.Module) -> set[str]:
    """Plain names that functions of a module pass by keyword: parts of what they build."""
    given = (value for choices in _keywords(tree).values() for value in choices.values())
    return {value.id for value in given if isinstance(value, ast.Name)}


def layers_passed(frame: Frame, namespace: Namespace, keyword: str) -> Value:
    """The classes that the functions of a module pass by a keyword, where all that they pass is known; else unknown."""
    choices = [*_keywords(namespace.tree).get(keyword, {}).values()]
    if not choices or len(choices) > MAX_CHOICES:
        return UNKNOWN
    outer = Frame(frame.session, namespace, in_module=frame.in_module)
    values = [evaluate(outer, choice) for choice in choices]
    known = all(is_class(value) or isinstance(value, (Function, Partial)) for value in values)
    return unite(*values) if known else UNKNOWN
