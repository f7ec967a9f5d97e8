"""Autocast regions in float32: asked for outright, or by the dtype of a model that may be in float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.asked_for_dtype import is_option, mentioned
from amplint.infer.flow.training.roles import is_autocast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Scope
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference

_DTYPE_ATTRIBUTES = frozenset({"dtype", "torch_dtype"})
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
        if device == "cuda":
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
    parts = [part for part in ast.walk(test) if isinstance(part, ast.expr)]
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
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Compare) and text in {ast.unparse(part) for part in (node.left, *node.comparators)}:
            return True
    return False
