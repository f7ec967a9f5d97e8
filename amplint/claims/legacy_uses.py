"""Where a file uses torch's deprecated mixed-precision names, and in which form."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.autocast_queries import cuda_only_queries
from amplint.claims.legacy_names import LEGACY, Legacy
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference


@dataclass(frozen=True, slots=True, eq=False)
class LegacyUse:
    """One use of a deprecated name in the file; ``node`` is where its finding lies."""

    reference: Reference
    legacy: Legacy
    form: str
    node: ast.expr
    exact: bool = True
    """No precondition is in doubt; else a rewrite is unsafe."""


def legacy_uses(facts: FileFacts, around: Surroundings) -> list[LegacyUse]:
    """The uses to report, in source order."""
    of_602 = {id(query.call) for query in cuda_only_queries(facts, around)}
    by_version = {
        bound_name(reference)
        for reference in facts.references
        if isinstance(reference.node, ast.alias) and around.version_guarded(reference.node)
    }
    compared: set[str] = set()
    uses = []
    for reference in facts.references:
        node, legacy = reference.node, LEGACY.get(reference.name)
        if legacy is None or isinstance(node, ast.alias) or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if _is_compared(node, around):
            compared.add(legacy.target)
        if reference.call is not None and id(reference.call) in of_602:
            continue
        if around.version_guarded(node) or root_of(reference) in by_version:
            continue
        uses.append(_use(reference, node, legacy, around))
    scripted = any(reference.name.startswith("torch.jit") for reference in facts.references)
    inexact = compared | ({"is_autocast_enabled"} if scripted else set())
    return [replace(use, exact=use.legacy.target not in inexact) for use in uses]


def _use(reference: Reference, node: ast.expr, legacy: Legacy, around: Surroundings) -> LegacyUse:
    if reference.call is not None:
        # Quotes inside an f-string would end it before Python 3.12, so a call in one has no rewrite.
        quoted = any(isinstance(ancestor, ast.JoinedStr) for ancestor in around.ancestors(node))
        return LegacyUse(reference, legacy, "quoted call" if quoted else "call", reference.call)
    parent = around.parent(node)
    if isinstance(parent, ast.Call) and parent.args[:1] == [node] and _is_partial(parent.func):
        return LegacyUse(reference, legacy, "partial", parent)
    if reference.decorates is not None:
        return LegacyUse(reference, legacy, "bare", node)
    return LegacyUse(reference, legacy, "annotation" if around.in_annotation(node) else "value", node)


def _is_partial(callee: ast.expr) -> bool:
    return ast.unparse(callee) in ("partial", "functools.partial")


def _is_compared(node: ast.expr, around: Surroundings) -> bool:
    """Whether a class is asked for by identity: ``isinstance``, a comparison, a base class."""
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, ast.Call) and ast.unparse(ancestor.func) in ("isinstance", "issubclass"):
            return True
        if isinstance(ancestor, ast.ClassDef):
            return node in ancestor.bases
        if isinstance(ancestor, ast.Compare):
            return True
        if isinstance(ancestor, ast.Call | ast.stmt):
            return False
    return False


def root_of(reference: Reference) -> str:
    """The name that a reference begins with."""
    node = reference.node
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def bound_name(reference: Reference) -> str:
    """The name that an import binds."""
    assert isinstance(reference.node, ast.alias)
    return reference.node.asname or reference.node.name.partition(".")[0]
