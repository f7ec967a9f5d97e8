"""What the answer to whether autocast is on decides over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.control import goes_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import FunctionNode, Surroundings

_OF_AUTOCAST = ("autocast", "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_cpu_dtype")


def steers_autocast(query: ast.Call, around: Surroundings) -> bool:
    """Whether the answer may decide over a region of autocast, or over a dtype that is asked of autocast.

    It does not where it is only tested for, and neither stands behind the test: other code computes the same values
    there, be it faster, and a cast to a dtype that is spelled out is meant for one device's autocast. So it is of a
    function that returns the answer, alone or among other tests, for the file's own calls of it.
    """
    return any(_leads_on(use, around, frozenset()) for use in _uses(query, around))


def _uses(query: ast.Call, around: Surroundings) -> list[ast.expr]:
    """Where the answer is read: the query itself, or a local variable that holds nothing else."""
    parent, function = around.parent(query), around.function(query)
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is query and function:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            named = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == targets[0].id]
            read = [name for name in named if isinstance(name.ctx, ast.Load)]
            return [*read, *([parent] if isinstance(parent, ast.NamedExpr) else [])]
    return [query]


def _leads_on(use: ast.expr, around: Surroundings, asked: frozenset[str]) -> bool:
    """Whether an answer is more than a test, or a test of what steers autocast; ``asked``: the functions that return
    it, by name."""
    child: ast.AST = use
    for ancestor in around.ancestors(use):
        if isinstance(ancestor, ast.UnaryOp) and isinstance(ancestor.op, ast.Not):
            child = ancestor
        elif isinstance(ancestor, ast.BoolOp):
            if any(_asks(node, around) for value in ancestor.values if value is not child for node in ast.walk(value)):
                return True
            child = ancestor
        elif isinstance(ancestor, ast.If | ast.While | ast.IfExp) and child is ancestor.test:
            return any(_asks(node, around) for node in _behind(ancestor, around))
        elif isinstance(ancestor, ast.Return):
            return _called_for_more(around.function(use), around, asked)
        else:
            return not isinstance(ancestor, ast.Expr | ast.Assert)
    return True


def _called_for_more(function: FunctionNode | None, around: Surroundings, asked: frozenset[str]) -> bool:
    """Whether a function's answer may lead on where the file calls it, or is not seen to be called."""
    if function is None or function.name in asked or not function.name.startswith("_"):
        return True
    uses = [node for node in around.uses_of(function.name) if not around.is_within(node, function)]
    calls = [around.parent(node) for node in uses]
    return not calls or any(
        not isinstance(call, ast.Call) or call.func is not node or _leads_on(call, around, asked | {function.name})
        for node, call in zip(uses, calls, strict=True)
    )


def _behind(test: ast.If | ast.While | ast.IfExp, around: Surroundings) -> Iterator[ast.AST]:
    """All that a test decides over: its branches, and what its function does further on where one of them leaves."""
    yield from ast.walk(test)
    leaves = isinstance(test, ast.If) and not (goes_on(test.body) and goes_on(test.orelse))
    function = around.function(test) if leaves else None
    for node in ast.walk(function) if function is not None else ():
        if getattr(node, "lineno", 0) > (test.end_lineno or test.lineno):
            yield node


def _asks(node: ast.AST, around: Surroundings) -> bool:
    """Whether a node enters a context, of autocast for all that is known, or asks autocast for a dtype."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return any(not _is_of_torch_alone(item.context_expr, around) for item in node.items)
    name = around.torch_name(node) if isinstance(node, ast.expr) else ""
    return name.rpartition(".")[2] in _OF_AUTOCAST


def _is_of_torch_alone(context: ast.expr, around: Surroundings) -> bool:
    """Whether a context is one of torch's that is not about autocast, such as ``torch.no_grad()``."""
    called = context.func if isinstance(context, ast.Call) else context
    name = around.torch_name(called)
    return bool(name) and "autocast" not in name.rpartition(".")[2]
