"""What tests demand of an attribute or a parameter for lines to be run: the constants with which they come out so."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from amplint.infer.syntax.bodies import children
from amplint.infer.syntax.control import goes_on
from amplint.infer.syntax.surely import last_line

if TYPE_CHECKING:
    from collections.abc import Iterator


def _is_same(value: object, other: object) -> bool:
    return type(value) is type(other) and value == other


def _is_among(value: object, others: object) -> bool:
    return isinstance(others, tuple) and value in others


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[object, object], bool | None]:
    """A comparison of numbers; None of anything else, which raises or compares in its own way."""

    def compared(value: object, other: object) -> bool | None:
        if isinstance(value, (int, float)) and isinstance(other, (int, float)):
            return compare(value, other)
        return None

    return compared


_COMPARED: dict[type[ast.cmpop], Callable[[object, object], bool | None]] = {
    ast.Is: _is_same,
    ast.IsNot: lambda value, other: not _is_same(value, other),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: _is_among,
    ast.NotIn: lambda value, others: not _is_among(value, others),
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
}


class Demand(NamedTuple):
    """Whether something is to be true, or to compare to a constant or some, and how that is to come out."""

    compared: type[ast.cmpop] | None
    other: object
    holds: bool

    def allows(self, value: object) -> bool:
        """Whether the test comes out so for a constant, or may."""
        answer = bool(value) if self.compared is None else _COMPARED[self.compared](value, self.other)
        return answer is None or answer is self.holds


class Demanded(NamedTuple):
    """What a test demands of something, by name, for some lines to be run; with ``columns``, from the first of these,
    in bytes, on the first line, to the other on the last."""

    name: str
    demand: Demand
    first: int
    last: int
    columns: tuple[int, int] | None = None

    def covers(self, row: int, column: int | None) -> bool:
        """Whether a place is run only so: a column, in bytes, or, without one, all of a row."""
        if self.columns is None:
            return self.first <= row <= self.last
        if column is None:
            return self.first < row < self.last
        return (self.first, self.columns[0]) <= (row, column) < (self.last, self.columns[1])


Subject = Callable[[ast.expr], "str | None"]
"""The name under which what an expression stands for is asked about; None where it is not."""


def demanded(body: list[ast.stmt], subject: Subject) -> Iterator[Demanded]:
    """What the tests in a block demand, each with the lines that are run on no other way."""
    pending = [body]
    while pending:
        block = pending.pop()
        for statement, after in zip(block, (*block[1:], None), strict=True):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            yield from _branched(statement, subject)
            yield from _within(statement, subject)
            pending += _blocks(statement)
            for name, demand in _settled(statement, subject) if after is not None else ():
                yield Demanded(name, demand, _following(statement), last_line(block))


def _branched(statement: ast.stmt, subject: Subject) -> Iterator[Demanded]:
    """What the test of a statement demands for each of its blocks."""
    if not _decides(statement):
        return
    for block, holds in ((statement.body, True), (statement.orelse, False)):
        for name, demand in _told(statement.test, subject, holds=holds) if block else ():
            yield Demanded(name, demand, block[0].lineno, last_line(block))


def _within(statement: ast.stmt, subject: Subject) -> Iterator[Demanded]:
    """What is demanded for the parts of the expressions of a statement that are not evaluated on every way."""
    pending = children(statement)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case, ast.Lambda)):
            continue
        pending += children(node)
        if isinstance(node, ast.IfExp):
            parts = [(node.test, node.body, True), (node.test, node.orelse, False)]
        elif isinstance(node, ast.BoolOp):
            holds = isinstance(node.op, ast.And)
            parts = [(test, part, holds) for n, part in enumerate(node.values) for test in node.values[:n]]
        else:
            continue
        for test, part, holds in parts:
            last, columns = part.end_lineno or part.lineno, (part.col_offset, part.end_col_offset or part.col_offset)
            for name, demand in _told(test, subject, holds=holds):
                yield Demanded(name, demand, part.lineno, last, columns)


def _following(statement: ast.stmt) -> int:
    return (statement.end_lineno or statement.lineno) + 1


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of statements within one."""
    parts = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    blocks = (getattr(part, name, []) for part in parts for name in ("body", "orelse", "finalbody"))
    yield from (block for block in blocks if block)


def _decides(statement: ast.stmt) -> TypeGuard[ast.If | ast.While]:
    """Whether a test of a statement decides which of its blocks is run."""
    return isinstance(statement, ast.If) or (isinstance(statement, ast.While) and not statement.orelse)


def _settled(statement: ast.stmt, subject: Subject) -> Iterator[tuple[str, Demand]]:
    """What is demanded where a statement is gone on behind: an assertion holds, and so does not what leaves."""
    if isinstance(statement, ast.Assert):
        yield from _told(statement.test, subject, holds=True)
    elif isinstance(statement, ast.If):
        for block, holds in ((statement.body, False), (statement.orelse, True)):
            yield from _told(statement.test, subject, holds=holds) if block and not goes_on(block) else ()


def _told(test: ast.expr, subject: Subject, *, holds: bool) -> Iterator[tuple[str, Demand]]:
    """What a test tells that holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _told(test.operand, subject, holds=not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for value in test.values:
            yield from _told(value, subject, holds=holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        name, compared, others = subject(test.left), type(test.ops[0]), constants(test.comparators[0])
        if name is not None and compared in _COMPARED and others is not None:
            yield name, Demand(compared, others[0], holds)
    elif (name := subject(test)) is not None:
        yield name, Demand(None, None, holds)


def constants(node: ast.expr) -> tuple[object] | None:
    """The constant that an expression is, or the tuple of them, alone in a tuple; None where it is no such thing."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = getattr(node.operand, "value", None)
        return (-number,) if isinstance(number, (int, float)) else None
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        items = [constants(item) for item in node.elts]
        return (tuple(item[0] for item in items if item is not None),) if None not in items else None
    return None
