"""What is run on every way through some lines of a block, and what is evaluated of an expression whatever it gives."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import children, nodes_below, once_for_each_node
from amplint.infer.syntax.references import references
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LEAVING = frozenset((ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue))
_WITH = (ast.With, ast.AsyncWith)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ENDS = frozenset((ast.Name, ast.Constant))
"""Kinds of expression that have no others in them."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHOOSING = frozenset((*_COMPREHENSIONS, ast.Lambda, ast.BoolOp, ast.IfExp, ast.Compare, ast.Raise))
"""Kinds of node of which not all parts are evaluated, whatever the others give."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is evaluated on every way through some lines.

    ``node`` is an expression, or a statement without blocks. ``holds``: it is a test, and these lines are run where it
    comes out so. ``always``: no branch or loop of the block stands around the lines. ``handlers`` may take what is
    raised there.
    """

    node: ast.expr | ast.stmt
    first: int
    last: int
    always: bool = True
    holds: bool | None = None
    handlers: tuple[ast.ExceptHandler, ...] = ()

    def is_caught(self, error: type[Exception]) -> bool:
        """Whether something around takes an error of this class, or may."""
        return any(_takes(handler, error) for handler in self.handlers)


def parts(body: list[ast.stmt], contexts: frozenset[int]) -> Iterator[Part]:
    """What a block evaluates, each with the lines of it that are run on no way but those that come there.

    ``contexts`` are those of its file that are :func:`transparent`.
    """
    if body:
        yield from _parts(body, _Place(body[0].lineno, last_line(body), contexts))


def last_line(body: list[ast.stmt]) -> int:
    return body[-1].end_lineno or body[-1].lineno


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines, and what stands around them, as in :class:`Part`; ``contexts`` as in :func:`parts`."""

    first: int
    last: int
    contexts: frozenset[int]
    always: bool = True
    handlers: tuple[ast.ExceptHandler, ...] = ()

    def part(self, node: ast.expr | ast.stmt) -> Part:
        return Part(node, self.first, self.last, self.always, None, self.handlers)

    def within(self, body: list[ast.stmt]) -> _Place:
        return replace(self, first=body[0].lineno, last=last_line(body), always=False)


def _parts(body: list[ast.stmt], place: _Place) -> Iterator[Part]:
    for before, statement in zip((None, *body), body, strict=False):
        if before is not None and _may_leave(before):
            place = replace(place, first=statement.lineno)
        yield from (place.part(head) for head in _heads(statement))
        if isinstance(statement, _WITH):
            if all(id(item.context_expr) in place.contexts for item in statement.items):
                yield from _parts(statement.body, place)
        elif isinstance(statement, ast.ClassDef):
            yield from _parts(statement.body, place)
        elif isinstance(statement, ast.Try):
            yield from _tried(statement, place)
        elif isinstance(statement, ast.If):
            yield from _branches(statement, place)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                yield from _parts(case.body, place.within(case.body))
        elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            for block in (statement.body, statement.orelse):
                yield from _parts(block, place.within(block)) if block else ()


@once_for_each_node
def _may_leave(statement: ast.stmt) -> bool:
    """Whether a statement may leave a block around it."""
    return any(node.__class__ in _LEAVING for node in nodes_below(statement))


def _branches(statement: ast.If, place: _Place) -> Iterator[Part]:
    """A chain of ``elif``, however long."""
    while True:
        inner = place.within(statement.body)
        yield replace(inner.part(statement.test), holds=True)
        yield from _parts(statement.body, inner)
        rest = statement.orelse
        if not rest:
            return
        place = place.within(rest)
        yield replace(place.part(statement.test), holds=False)
        if len(rest) > 1 or not isinstance(rest[0], ast.If):
            yield from _parts(rest, place)
            return
        statement = rest[0]
        yield place.part(statement.test)


def _tried(statement: ast.Try, place: _Place) -> Iterator[Part]:
    """A ``finally`` that leaves takes whatever was raised."""
    takes_all = any(map(_may_leave, statement.finalbody))
    if not takes_all:
        yield from _parts(statement.body, replace(place, handlers=(*place.handlers, *statement.handlers)))
        yield from _parts(statement.finalbody, place)
    for block in (statement.orelse, *(handler.body for handler in statement.handlers)):
        yield from _parts(block, place.within(block)) if block else ()


def _heads(statement: ast.stmt) -> Iterable[ast.expr | ast.stmt]:
    """What a statement evaluates before any block in it; of one without blocks all but annotations."""
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        return (statement.test,)
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return (statement.iter,)
    if isinstance(statement, ast.Match):
        return (statement.subject,)
    if isinstance(statement, _WITH):
        return [item.context_expr for item in statement.items]
    if isinstance(statement, _DEFINITIONS):
        given = (*statement.args.defaults, *statement.args.kw_defaults)
        return [*statement.decorator_list, *(default for default in given if default is not None)]
    if isinstance(statement, ast.ClassDef):
        return [*statement.decorator_list, *statement.bases, *(keyword.value for keyword in statement.keywords)]
    if isinstance(statement, ast.AnnAssign):
        return [statement.value, statement.target] if statement.value is not None else ()
    return () if hasattr(statement, "body") else (statement,)


@once_for_each_node
def transparent(tree: ast.Module) -> frozenset[int]:
    """By ``id``, the contexts of a file that surely let through what is raised inside them: torch's, and open files.

    Any other may keep it, as ``contextlib.suppress`` does.
    """
    torch = {id(reference.node) for reference in references(tree)}
    contexts = [item.context_expr for node in nodes_below(tree) if isinstance(node, _WITH) for item in node.items]
    called = [(made, made.func if isinstance(made, ast.Call) else made) for made in contexts]
    return frozenset(id(made) for made, callee in called if id(callee) in torch or getattr(callee, "id", "") == "open")


def _takes(handler: ast.ExceptHandler, error: type[Exception]) -> bool:
    """Whether a handler takes an error, or may, and does not end by raising one."""
    if isinstance(handler.body[-1], ast.Raise):
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    for kind in kinds:
        named = getattr(builtins, kind.id, None) if isinstance(kind, ast.Name) else None
        if not isinstance(named, type) or issubclass(error, named):
            return True
    return False


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """An expression or a statement without blocks, and what of it is evaluated whatever the rest gives."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        kind = found.__class__
        if kind in _ENDS:
            continue
        if kind not in _CHOOSING:
            pending += children(found)
        elif isinstance(found, ast.Lambda):
            pending += [default for default in (*found.args.defaults, *found.args.kw_defaults) if default is not None]
        elif isinstance(found, _COMPREHENSIONS):
            pending.append(found.generators[0].iter)
        elif isinstance(found, ast.BoolOp):
            pending.append(found.values[0])
        elif isinstance(found, ast.IfExp):
            pending.append(found.test)
        elif isinstance(found, ast.Compare):
            pending += [found.left, found.comparators[0]]
