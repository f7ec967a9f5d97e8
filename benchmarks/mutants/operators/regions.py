"""Autocast regions that are removed or added, and the casts at their entrance."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mutants.edits import Edit
from mutants.operators.casts import drop
from mutants.operators.operator import Operator
from mutants.operators.spelling import called, is_cast, is_upcast, operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.operators.operator import Edits
    from mutants.sources import File


def is_region(node: ast.AST, *, disabled: bool | None = None) -> bool:
    """Whether an expression opens an autocast region; ``disabled``: only one that turns it off, or only one that does
    not."""
    if not isinstance(node, ast.Call) or "autocast" not in called(node):
        return False
    off = any(
        keyword.arg == "enabled" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in node.keywords
    ) or any(isinstance(argument, ast.Constant) and argument.value is False for argument in node.args)
    return disabled is None or disabled is off


def disabled_bodies(file: File) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """The statements that run with autocast disabled, each body with what opens it."""
    for node in ast.walk(file.tree):
        if (isinstance(node, ast.With) and any(is_region(item.context_expr, disabled=True) for item in node.items)) or (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and any(is_region(decorator, disabled=True) for decorator in node.decorator_list)
        ):
            yield node, node.body


def _exit_cast(file: File) -> Edits:
    """A cast inside of a disabled region, or of the statements right before it."""
    for opener, body in disabled_bodies(file):
        inside = [node for statement in body for node in ast.walk(statement)]
        for node in inside:
            if is_cast(file, node) and isinstance(node, ast.Call) and file.function(node) is not None:
                yield (drop(file, node),)
        above = file.parents.get(opener)
        siblings: list[ast.stmt] = getattr(above, "body", [])
        if opener in siblings and isinstance(opener, ast.With):
            index = siblings.index(opener)
            for statement in siblings[max(0, index - 2) : index]:
                for node in ast.walk(statement):
                    if is_upcast(file, node) and isinstance(node, ast.Call):
                        yield (drop(file, node),)


def _region_removed(file: File) -> Edits:
    for opener, _ in disabled_bodies(file):
        if isinstance(opener, ast.With) and len(opener.items) == 1 and file.function(opener) is not None:
            last = opener.items[0].context_expr
            end = (last.end_lineno or 0, last.end_col_offset or 0)
            if file.lines[end[0] - 1][end[1] :].startswith(b":"):
                yield (Edit(opener.lineno, opener.col_offset, *end, "if True"),)
        elif isinstance(opener, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in opener.decorator_list:
                if is_region(decorator, disabled=True):
                    yield (file.without_decorator(decorator),)


def _region_added(file: File) -> Edits:
    """A statement with a product goes into a region with autocast disabled, as it stands."""
    if file.torch is None:
        return
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or node.lineno != node.end_lineno:
            continue
        if any(operands(file, inner) for inner in ast.walk(node)):
            yield (file.before(node, f'with {file.torch}.autocast("cuda", enabled=False): '),)


OPERATORS = (
    Operator("autocast-exit-cast-dropped", _exit_cast),
    Operator("autocast-region-removed", _region_removed, numeric=True),
    Operator("autocast-region-added", _region_added),
)
