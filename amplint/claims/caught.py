"""Where a file catches its own errors: what raises there does not end the program, which goes on another way."""

from __future__ import annotations

import ast
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.control import TRIES
from amplint.infer.syntax.raising import takes_failures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.source import Location, Source, Span


def is_caught(source: Source, span: Span) -> bool:
    """Whether a place lies in a ``try`` with a handler that goes on, or in ``contextlib.suppress``.

    A handler that ends in ``raise`` hands the error on, and some take others alone.
    """
    starts, farthest = _caught_spans(source)
    index = bisect_right(starts, span.start)
    return index > 0 and span.end <= farthest[index - 1]


def has_substitute(source: Source, span: Span) -> bool:
    """Whether a place lies in a ``try`` with a handler that takes what torch raises for a dtype, and computes something
    in its place from a variable that the ``try`` reads: to return it, or for a target of the ``try``."""
    nodes = (node for node in nodes_of_kind(source.tree, *TRIES) if _is_substituted(node))
    inner = (source.span(statement) for node in nodes for statement in getattr(node, "body", []))
    return any(lies.start <= span.start and span.end <= lies.end for lies in inner)


@once_for_each_node
def _is_substituted(node: ast.AST) -> bool:
    body: list[ast.stmt] = getattr(node, "body", [])
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
    given, read = _given(body), _read(body)
    return any(
        takes_failures(handler)
        and not any(isinstance(inner, ast.Raise) for inner in nodes_below(handler))
        and _given(handler.body).keys() & {*given, _RETURNED}
        and read & {name for value in _given(handler.body).values() for name in _read([value])}
        for handler in handlers
    )


_RETURNED = "return"


def _given(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """The targets that statements give values that are no constants; what is returned is that of ``return``."""
    found: dict[str, ast.expr] = {}
    for node in (inner for statement in body for inner in nodes_below(statement)):
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) or value is None:
            continue
        if isinstance(node, ast.Return):
            found[_RETURNED] = value
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target): value for target in node.targets}
    return found


def _read(parts: Sequence[ast.AST]) -> set[str]:
    inner = (node for part in parts for node in nodes_below(part))
    return {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


@lru_cache(maxsize=1)
def _caught_spans(source: Source) -> tuple[list[Location], list[Location]]:
    """Where the statements start whose errors a file catches, and how far those up to each of them reach."""
    nodes = nodes_of_kind(source.tree, *TRIES, ast.With, ast.AsyncWith)
    spans = sorted(source.span(statement) for node in nodes for statement in _catching(node))
    return [span.start for span in spans], list(accumulate((span.end for span in spans), max))


def _catching(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements whose errors a node catches."""
    if type(node) in TRIES:
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
        if any(takes_failures(handler) and not isinstance(handler.body[-1], ast.Raise) for handler in handlers):
            yield from getattr(node, "body", [])
    elif isinstance(node, ast.With | ast.AsyncWith):
        calls = (item.context_expr for item in node.items)
        names = (ast.unparse(call.func) for call in calls if isinstance(call, ast.Call))
        if any(name.rpartition(".")[2] == "suppress" for name in names):
            yield from node.body
