"""Casts that give the operands of an operation one dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import castable, differ, dtype_of, dtype_of_tensor, is_stable, known_in, lanes_of, of_layer
from amplint.finding import Applicability, Edit
from amplint.infer.lattice.dtypes import BITS
from amplint.rewriting.nodes import find_operand
from amplint.source import Span

_EXACT = (ast.Add, ast.Sub, ast.Mult)
"""Operators that give what their operands promote to, integers too."""

if TYPE_CHECKING:
    import libcst as cst

    from amplint.claims.conflict import Conflict
    from amplint.claims.suspect import Suspect
    from amplint.infer.lattice.values import Tensor
    from amplint.infer.state.facts import FileFacts, Promotion
    from amplint.infer.state.operand import Operand
    from amplint.visit import Visit


def alignment(visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand) -> list[Edit] | None:
    """Edits that cast every operand that differs from the leader to its dtype; None where that cannot be written."""
    named = _surely_there(visit.facts, conflict, leader)
    dtype = dtype_of(visit.facts, conflict, named) if named is not None else None
    if dtype is None:
        return None
    edits = []
    for operand in _followers(visit.facts, conflict, leader):
        expression = find_operand(visit, node, operand) if castable(conflict, operand) else None
        if expression is None:
            return None
        edits.append(_cast(visit, expression, dtype))
    return edits or None


def _surely_there(facts: FileFacts, conflict: Conflict, leader: Operand) -> Operand | None:
    """An operand of the leader's dtype that has to be given: instead of a bias, which may be None."""
    if leader.name != "bias" or of_layer(conflict, leader):
        return leader
    lanes = lanes_of(facts, conflict)
    others = (operand for operand in conflict.operands if operand.name != "bias" and not differ(operand, leader, lanes))
    return next((operand for operand in others if known_in(operand, lanes)), None)


def same_cast(visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand, trailer: str) -> list[Edit] | None:
    """Edits that put a cast such as ``.float()`` after every operand that differs from the leader."""
    edits = []
    for operand in _followers(visit.facts, conflict, leader):
        expression = find_operand(visit, node, operand) if castable(conflict, operand) else None
        if expression is None:
            return None
        edits.append(visit.append(expression, trailer))
    return edits or None


def cast_to_lead(
    visit: Visit, node: cst.CSTNode, conflict: Conflict, leader: Operand, trailer: str
) -> list[Edit] | None:
    """Edits that put a cast after every operand that is not sure to have the leader's dtype in every scenario.

    For operations that demand one dtype: wherever one ran before, the casts do nothing. None where an operand has no
    expression of its own.
    """
    edits = []
    for operand in conflict.operands:
        if operand is leader or _is_same(operand, leader) or _agree(operand.value, leader.value):
            continue
        expression = find_operand(visit, node, operand)
        if expression is None:
            return None
        edits.append(visit.append(expression, trailer))
    return edits


def _is_same(a: Operand, b: Operand) -> bool:
    """Whether both are the same variable: ``torch.addmm(total, a, b, out=total)``."""
    return a.node is not None and b.node is not None and ast.dump(a.node) == ast.dump(b.node)


def _agree(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors surely have one dtype, in every scenario."""
    for x, y in zip(a.dtypes, b.dtypes, strict=True):
        followed = x.symbol is not None and x.symbol is y.symbol
        forced = x.exact and y.exact and x.mask == y.mask and not x.assumed and not y.assumed
        if not followed and not forced:
            return False
    return True


def _followers(facts: FileFacts, conflict: Conflict, leader: Operand) -> list[Operand]:
    lanes = lanes_of(facts, conflict)
    return [operand for operand in conflict.operands if operand is not leader and differ(operand, leader, lanes)]


def _cast(visit: Visit, expression: cst.BaseExpression, dtype: str) -> Edit:
    """Cast an expression; a plain cast that it ends in gives way."""
    import libcst as cst

    if isinstance(expression, cst.Call) and isinstance(expression.func, cst.Attribute) and not expression.lpar:
        plain = not expression.args or (len(expression.args) == 1 and _is_dtype(visit, expression.args[0]))
        if expression.func.attr.value in ("float", "double", "half", "bfloat16", "to") and plain:
            start = visit.outer_span(expression.func.value).end
            return Edit(Span(start, visit.span(expression).end), f".to({dtype})")
    return visit.append(expression, f".to({dtype})")


def _is_dtype(visit: Visit, argument: cst.Arg) -> bool:
    """Whether an argument is a dtype that is named: ``torch.float32``, however torch is imported."""
    place = visit.span(argument.value)
    named = argument.keyword is None or argument.keyword.value == "dtype"
    dtypes = {f"torch.{name}" for name in BITS}
    return (
        named
        and not argument.star
        and any(r.name in dtypes and visit.source.span(r.node) == place for r in visit.facts.references)
    )


def result_dtype(visit: Visit, node: ast.expr) -> tuple[str | None, list[Edit]]:
    """An expression for the dtype of a tensor's expression, a sum or product of two tensors too, and its imports."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, _EXACT) else ()
    if sides and all(map(is_stable, sides)):
        torch, imports = visit.import_name("torch")
        return f"{torch}.result_type({', '.join(map(ast.unparse, sides))})", imports
    return dtype_of_tensor(node), []


def report_promotion(visit: Visit, node: cst.CSTNode, suspect: Suspect) -> None:
    """Report a promotion, with a cast of the wide operand where it can be written."""
    promotion: Promotion = suspect.data
    narrow, wide = promotion.narrow.node, find_operand(visit, node, promotion.wide)
    dtype = dtype_of_tensor(narrow) if narrow is not None else None
    if dtype is None or wide is None:
        visit.report(suspect)
        return
    edit = visit.append(wide, f".to({dtype})")
    visit.report(suspect, visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", edit))


def cast_unpacked(node: cst.Call, dtype: str | None, visit: Visit) -> list[Edit]:
    """Edits that cast the variables that a call's results are unpacked into, on a line behind it."""
    import libcst as cst

    assignment = visit.parent(node)
    line = visit.parent(assignment) if isinstance(assignment, cst.Assign) and len(assignment.targets) == 1 else None
    if dtype is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return []
    target = assignment.targets[0].target if isinstance(assignment, cst.Assign) else None
    elements = target.elements if isinstance(target, cst.Tuple) else ()
    variables = [e.value.value for e in elements if isinstance(e, cst.Element) and isinstance(e.value, cst.Name)]
    root = dtype.split(".", 1)[0].split("[", 1)[0]
    names = [name for name in variables if name != "_"]
    if not names or len(variables) != len(elements) or root in names:
        return []
    casts = ", ".join(f"{name}.to({dtype})" for name in names)
    return [visit.insert_after(line, f"{', '.join(names)} = {casts}")]
