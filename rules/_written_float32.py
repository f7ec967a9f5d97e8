"""Statements that compute in float32 whether autocast is in float32 or off: what they take is cast in their code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.training.program import Program

_CASTS = frozenset({"float", "double"})
_NARROWING = frozenset({"half", "bfloat16", "type"})
FLOAT32 = frozenset(f"torch.{name}" for name in ("float32", "float", "float64", "double"))
"""The dtypes that autocast leaves alone when it is off, and that only CUDA's takes."""


def stay_float32(statements: Iterable[ast.stmt], program: Program) -> bool:
    """Whether statements compute only from tensors that they cast to float32 or float64 themselves.

    Assignments to variables, returns and bare expressions of torch's functions, methods and operators are followed,
    with numbers and what was assigned before; anything else may take a tensor from elsewhere.
    """
    known: set[str] = set()
    for statement in statements:
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr) or value is None:
            return False
        if not _stays(value, known, program):
            return False
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                if not all(isinstance(name, ast.Name) for name in names):
                    return False
                known |= {name.id for name in names if isinstance(name, ast.Name)}
    return True


def _stays(node: ast.expr, known: set[str], program: Program) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in known
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_stays(part, known, program) for part in parts)
        case ast.UnaryOp(operand=value) | ast.Subscript(value=value) | ast.Attribute(value=value):
            return _stays(value, known, program)
        case ast.BinOp(left=left, right=right):
            return _stays(left, known, program) and _stays(right, known, program)
        case ast.Call():
            return _is_cast(node, program) or _call_stays(node, known, program)
    return False


def _call_stays(call: ast.Call, known: set[str], program: Program) -> bool:
    """Whether a call is of torch's functions or a tensor's method, and given nothing else: no dtype, for example."""
    if not all(_stays(value, known, program) for value in (*call.args, *(k.value for k in call.keywords))):
        return False
    if (program.name(call.func) or "").startswith("torch."):
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr in _NARROWING:
        return False
    return _stays(call.func.value, known, program)


def _is_cast(call: ast.Call, program: Program) -> bool:
    """``x.float()``, ``x.to(torch.float32)``, ``x.to(x.device, dtype=torch.float32)``, ``x.type(torch.float32)``."""
    if not isinstance(call.func, ast.Attribute) or program.name(call.func) is not None:
        return False
    if call.func.attr in _CASTS:
        return not call.args and not call.keywords
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return call.func.attr in ("to", "type") and any(program.name(value) in FLOAT32 for value in given)
