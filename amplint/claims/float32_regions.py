"""Autocast regions in float32: asked for outright, or by the dtype of a model that may be in float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.asked_for_dtype import is_option, mentioned
from amplint.claims.on_cuda import on_cuda
from amplint.infer.flow.training.roles import is_autocast
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Program, Scope
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference

_DTYPE_ATTRIBUTES = frozenset({"dtype", "torch_dtype"})
_CASTS = frozenset({"float", "double"})
_NARROWING = frozenset({"half", "bfloat16", "type"})
FLOAT32 = frozenset(f"torch.{name}" for name in ("float32", "float", "float64", "double"))
"""The dtypes that autocast leaves alone when it is off, and that only CUDA's takes."""


def float32_regions(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, ast.expr, ast.expr | None]]:
    """Regions that may be on and in float32: the call, its dtype, and what the dtype was taken from, None where
    the call itself says float32.

    CUDA's autocast takes float32 and casts up to it, so a region for CUDA alone is no finding; every other device warns
    and switches the region off (torch 2.13, ``torch/amp/autocast_mode.py``).
    """
    program = facts.training.program
    scopes = {id(scope.node): scope for scope in program.scopes}
    for reference in facts.references:
        region = _asked(reference)
        if region is None:
            continue
        call, device, dtype = region
        if device == "cuda" or on_cuda(call, around):
            continue
        if program.name(dtype) in FLOAT32:
            yield call, dtype, None
            continue
        scope = scopes.get(id(around.function(call)), program.module)
        source = _of_a_model(dtype, scope)
        if source is None or around.guarded(call, lambda test: _settles(test, around)) or _told_apart(dtype, scope):
            continue
        if not _is_asked_for(around, call, dtype):
            yield call, dtype, source


def is_float32_without(call: ast.Call, facts: FileFacts, around: Surroundings) -> bool:
    """Whether all that a region in float32 holds is computed in float32 where the region is off, too."""
    region = next((a for a in around.ancestors(call) if isinstance(a, ast.With)), None)
    if region is None or not any(item.context_expr is call for item in region.items):
        return False
    return _stay_float32(region.body, facts.training.program)


def _asked(reference: Reference) -> tuple[ast.Call, str | None, ast.expr] | None:
    """A region that is given a dtype and is on: its call, its device where that is a constant, and the dtype."""
    call, name = reference.call, reference.name
    if call is None or not is_autocast(name) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    legacy = name.startswith(("torch.cuda.", "torch.cpu."))
    order = ("enabled", "dtype") if legacy else ("device_type", "dtype", "enabled")
    given = dict(zip(order, call.args, strict=False))
    given.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
    enabled, dtype = given.get("enabled"), given.get("dtype")
    if dtype is None or any(keyword.arg is None for keyword in call.keywords):
        return None
    if enabled is not None and not (isinstance(enabled, ast.Constant) and enabled.value is True):
        return None
    device = given.get("device_type")
    constant = device.value if isinstance(device, ast.Constant) and isinstance(device.value, str) else None
    return call, name.split(".")[1] if legacy else constant, dtype


def _of_a_model(node: ast.expr, scope: Scope) -> ast.expr | None:
    """What reads a model's, config's or tensor's dtype in an expression, or in what its variable is set to."""
    values = [node]
    if isinstance(node, ast.Name):
        values = [v for t, v in scope.assignments if isinstance(t, ast.Name) and t.id == node.id]
    return next((found for value in values if (found := _dtype_read(value)) is not None), None)


def _dtype_read(node: ast.expr) -> ast.expr | None:
    """``model.dtype``, ``getattr(config, "torch_dtype", None)``."""
    if isinstance(node, ast.Attribute):
        return node if node.attr in _DTYPE_ATTRIBUTES else None
    if not isinstance(node, ast.Call):
        return None
    function = ast.unparse(node.func)
    if function == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        return node if node.args[1].value in _DTYPE_ATTRIBUTES else None
    return None


def _settles(test: ast.expr, around: Surroundings) -> bool:
    """Whether a test asks for a dtype, or for an option that may say which one it is."""
    parts = [part for part in ast.walk(around.asked(test)) if isinstance(part, ast.expr)]
    return bool(mentioned(test, around)) or is_option(test, around) or any(map(around.is_dtype, parts))


def _is_asked_for(around: Surroundings, call: ast.Call, dtype: ast.expr) -> bool:
    """Whether callers of a function switch a region on by an argument, and pass the tensor that has its dtype."""
    function = around.function(call)
    if function is None or not isinstance(dtype, ast.Attribute):
        return False
    spec = function.args
    given = {argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    asked = any(answer and isinstance(test, ast.Name) and test.id in given for test, answer in around.tests(call))
    return asked and isinstance(dtype.value, ast.Name) and dtype.value.id in given


def _told_apart(dtype: ast.expr, scope: Scope) -> bool:
    """Whether the function compares the dtype with another, and may have replaced it."""
    text = ast.unparse(dtype)
    return any(
        text in {ast.unparse(part) for part in (node.left, *node.comparators)}
        for node in nodes_of_kind(scope.node, ast.Compare)
    )


def _stay_float32(statements: Iterable[ast.stmt], program: Program) -> bool:
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
