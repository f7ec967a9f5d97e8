"""Choices of a dtype that come out one way only, and values given as a dtype that are none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.dtype_outcomes import DTYPES, Outcome, Outcomes
from amplint.infer.syntax.bodies import children
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Program, Scope
    from amplint.infer.state.facts import FileFacts

_NAMES = frozenset(("float16", "half", "fp16", "bfloat16", "bf16", "float32", "fp32", "16-mixed", "bf16-mixed"))
"""How settings and torch itself call the dtypes of mixed precision."""
_COMPILED = ("torch.ops.", "torch.classes.")
"""Where libraries put functions of their own."""
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def always_true(facts: FileFacts) -> Iterator[tuple[ast.BoolOp, ast.expr]]:
    """Tests ``x or "A"`` and ``"A" or "B" in x``, true whatever the rest says, where a dtype is asked for or chosen:
    each with the part that is always true."""
    program = facts.training.program
    for node in nodes_of_kind(facts.source.tree, ast.If, ast.IfExp, ast.While):
        test = node.test
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
            continue
        parts = [part for part in test.values if _is_true(part, program)]
        if not parts:
            continue
        branches = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
        if any(_names_dtype(part, program) for place in (*parts, *branches) for part in ast.walk(place)):
            yield test, parts[0]


def _is_true(node: ast.expr, program: Program) -> bool:
    """Whether an operand is true by itself: a string, or a dtype."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(node.value)
    return program.name(node) in DTYPES


def _names_dtype(node: ast.AST, program: Program) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in _NAMES
    return isinstance(node, ast.Name | ast.Attribute) and program.name(node) in DTYPES


def never_equal(facts: FileFacts) -> Iterator[tuple[ast.Compare, str]]:
    """Comparisons of what is one of torch's dtypes, or another constant, with the name of a dtype that it never is:
    of several of one variable in a function the first."""
    with_names = {
        id(node): names for node in nodes_of_kind(facts.source.tree, ast.Compare) if (names := names_in(node))
    }
    if not with_names:
        return
    outcomes = Outcomes(facts.training.program)
    told: set[tuple[int, str]] = set()
    for scope, node in _comparisons(facts):
        named = with_names.get(id(node))
        if named is None:
            continue
        found = outcomes.of(node.left, scope)
        known = not any(outcome.unknown or outcome.constant in named for outcome in found)
        place = (id(scope), ast.dump(node.left))
        if known and any(outcome.is_dtype for outcome in found) and place not in told:
            told.add(place)
            yield node, named[0]


def names_in(node: ast.Compare) -> tuple[str, ...]:
    """The strings that an expression is compared with, where one of them is the name of a dtype; none where it is
    compared with anything else."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], _EQUALITIES):
        return ()
    right = node.comparators[0]
    among = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else [right]
    named = tuple(v.value for v in among if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return named if len(named) == len(among) and _NAMES.intersection(named) else ()


def no_dtypes(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.expr, object]]:
    """Calls of torch whose ``dtype`` may be a boolean or a string, with the expression that makes it, and with that."""
    program = facts.training.program
    outcomes = Outcomes(program, once=True)
    for scope in program.scopes:
        for call in scope.calls:
            for keyword in call.keywords:
                if keyword.arg != "dtype" or not _is_of_torch(program.name(call.func)):
                    continue
                wrong = [outcome for outcome in outcomes.of(keyword.value, scope) if _is_no_dtype(outcome)]
                if wrong:
                    yield call, outcomes.maker(keyword.value, scope), min(wrong, key=repr).constant


def _is_of_torch(name: str | None) -> bool:
    """Whether a qualified name is one of torch's own functions."""
    return name is not None and name.startswith("torch.") and not name.startswith(_COMPILED)


def _is_no_dtype(outcome: Outcome) -> bool:
    return not outcome.unknown and isinstance(outcome.constant, bool | str)


def _comparisons(facts: FileFacts) -> Iterator[tuple[Scope, ast.Compare]]:
    """The comparisons in every function, each with the function's own scope."""
    for scope in facts.training.program.scopes:
        pending: list[ast.AST] = [*reversed(scope.body)]
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(node, ast.Compare):
                yield scope, node
            pending += reversed(children(node))
