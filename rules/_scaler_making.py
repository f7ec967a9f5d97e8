"""Scalers that are made where, or for what, none is needed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.training.paths import switched_off
from amplint.infer.training.roles import Role, is_autocast, is_scaler
from amplint.infer.training.steps import Step

from ._surroundings import FunctionNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.facts import FileFacts

    from ._surroundings import Surroundings


def made_anew(facts: FileFacts) -> Iterator[ast.Call]:
    """Scalers that are made in the innermost loop that steps with them."""
    for moment in facts.training.moments_of(Step.SCALER_STEP):
        if not moment.loops or moment.event.scaler is None:
            continue
        body = {id(node) for node in ast.walk(moment.loops[-1])}
        for thing in facts.training.roles.things.get(moment.event.scaler, ()):
            if thing.role is Role.SCALER and isinstance(thing.node, ast.Call) and id(thing.node) in body:
                yield thing.node


def for_bfloat16(facts: FileFacts, around: Surroundings) -> Iterator[ast.Call]:
    """Scalers that are always enabled, where all autocast regions of their function or class are in bfloat16, or all of
    the file where those have none."""
    program = facts.training.program
    if not facts.training.moments_of(Step.SCALER_STEP):
        return
    dtypes: dict[int, list[str | None]] = {}
    for reference in facts.references:
        call = reference.call
        if call is not None and is_autocast(reference.name) and not switched_off(call):
            second = call.args[1] if len(call.args) > 1 else None
            dtype = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), second)
            name = program.name(dtype) if dtype is not None else None
            dtypes.setdefault(_owner(call, around), []).append(name)
    everywhere = [name for names in dtypes.values() for name in names]
    for reference in facts.references:
        call = reference.call
        if call is None or not is_scaler(reference.name):
            continue
        beside = dtypes.get(_owner(call, around), everywhere)
        if not beside or any(name != "torch.bfloat16" for name in beside):
            continue
        if len(call.args) <= 1 and all(keyword.arg not in (None, "enabled") for keyword in call.keywords):
            yield call


def _owner(node: ast.AST, around: Surroundings) -> int:
    """Identifies the outermost function or class around a node, 0 for the module."""
    owners = [id(a) for a in around.ancestors(node) if isinstance(a, FunctionNode | ast.ClassDef)]
    return owners[-1] if owners else 0
