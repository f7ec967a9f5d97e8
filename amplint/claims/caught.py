"""Where a file catches its own errors: what raises there does not end the program, which goes on another way."""

from __future__ import annotations

import ast
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.control import TRIES
from amplint.infer.syntax.raising import takes_failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.source import Location, Source, Span


def is_caught(source: Source, span: Span) -> bool:
    """Whether a place lies in a ``try`` with a handler that goes on, or in ``contextlib.suppress``.

    A handler that ends in ``raise`` hands the error on, and some take others alone.
    """
    starts, farthest = _caught_spans(source)
    index = bisect_right(starts, span.start)
    return index > 0 and span.end <= farthest[index - 1]


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
