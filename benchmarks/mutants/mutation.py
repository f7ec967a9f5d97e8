"""A mutant: what an operator does at one place, and the rows that have to run for it to matter."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutants.operators import mutations
from mutants.sources import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.edits import Edit
    from mutants.sources import File

FUNCTION, AUTOGRAD, METHOD = "function", "autograd", "method"
"""In what a place lies: a plain function, an autograd Function, or the method of any other class."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """``rows`` are those of the statement, of which one must run; ``kind`` says in what it lies."""

    operator: str
    edits: tuple[Edit, ...]
    rows: tuple[int, int]
    kind: str


def found_in(file: File) -> Iterator[Mutation]:
    """Every mutant of a file that lies in a function."""
    for operator, edits in mutations(file):
        made = _placed(file, operator.name, edits)
        if made is not None:
            yield made


def _placed(file: File, operator: str, edits: tuple[Edit, ...]) -> Mutation | None:
    row, column = edits[0].row, edits[0].column
    chain = _chain(file.tree, row, column)
    functions = [node for node in chain if isinstance(node, FUNCTIONS)]
    if not functions:
        return None
    owners = [node for node in chain if isinstance(node, ast.ClassDef)]
    outer = functions[0]
    if owners and chain.index(owners[-1]) > chain.index(outer):
        return None
    innermost = functions[-1]
    signature = (row, column) < (innermost.body[0].lineno, innermost.body[0].col_offset)
    if not signature and _may_be_passed_over(chain, row, column):
        return None
    if signature:
        if innermost is not outer:
            return None
        rows = (innermost.body[0].lineno, innermost.end_lineno or 0)
    else:
        rows = _rows(chain)
    kind = METHOD
    if not owners:
        kind = FUNCTION
    elif any(file.name(base).endswith("Function") for base in owners[-1].bases):
        kind = AUTOGRAD
    return Mutation(operator, edits, rows, kind)


def _chain(tree: ast.Module, row: int, column: int) -> list[ast.stmt]:
    """The statements around a place, outermost first."""
    chain: list[ast.stmt] = []
    node: ast.AST = tree
    while True:
        inner = next((one for one in _statements(node) if _covers(one, row, column)), None)
        if inner is None:
            return chain
        chain.append(inner)
        node = inner


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from _statements(child)


def _covers(node: ast.stmt, row: int, column: int) -> bool:
    start = (node.lineno, node.col_offset)
    decorators = getattr(node, "decorator_list", [])
    if decorators:
        start = (decorators[0].lineno, 0)
    return start <= (row, column) <= (node.end_lineno or 0, node.end_col_offset or 0)


def _rows(chain: list[ast.stmt]) -> tuple[int, int]:
    last = chain[-1]
    inner = next(_statements(last), None)
    return last.lineno, (last.end_lineno or 0) if inner is None else max(last.lineno, inner.lineno - 1)


def _may_be_passed_over(chain: list[ast.stmt], row: int, column: int) -> bool:
    """Whether a row may run without what is edited: in a conditional, a lambda, a block on its header's row."""
    if len(chain) > 1 and chain[-1].lineno == chain[-2].lineno:
        return True
    for node in ast.walk(chain[-1]):
        inner = [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
        inner += [node.body] if isinstance(node, ast.Lambda) else []
        if any(
            (part.lineno, part.col_offset) <= (row, column) <= (part.end_lineno or 0, part.end_col_offset or 0)
            for part in inner
        ):
            return True
    return False
