"""Scalers of single processes beside parameters that FSDP shards, of which each process sees a part."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import FileFacts

_SHARDED = "FullyShardedDataParallel"


def alone_beside_shards(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Plain GradScalers that step in a file whose model ``FullyShardedDataParallel`` wraps, each with that call.

    Shown by two processes: an infinite gradient in the shard of one has that one skip the step and halve its scale
    while the other steps; ``ShardedGradScaler`` has both skip. Parameters of ``fully_shard`` are DTensors, which need
    no scaler of their own.
    """
    wrapped = [
        reference.call
        for reference in facts.references
        if reference.call is not None
        and reference.name.startswith("torch.distributed.fsdp.")
        and reference.name.endswith(f".{_SHARDED}")
    ]
    things = [thing for some in facts.training.roles.things.values() for thing in some]
    if not wrapped or any(thing.role is Role.SHARDED_SCALER for thing in things):
        return
    stepping = {moment.event.scaler for moment in facts.training.moments_of(Step.SCALER_STEP)}
    for place, some in facts.training.roles.things.items():
        made = [thing.node for thing in some if thing.role is Role.SCALER and isinstance(thing.node, ast.Call)]
        if place not in stepping or len(made) != 1:
            continue
        run = (call for call in wrapped if _is_run(call, made[0], around))
        beside = next((call for call in run if not _exclude_each_other(call, made[0], around)), None)
        if beside is not None:
            yield made[0], beside


def _is_run(call: ast.Call, made: ast.Call, around: Surroundings) -> bool:
    """Whether a call stands outside of functions, in a method, where the scaler is made, or in a function that the file
    itself mentions: a helper that it only offers wraps no model of its own."""
    function = around.function(call)
    if function in (None, around.function(made)) or isinstance(around.parent(function), ast.ClassDef):
        return True
    return any(not around.is_within(use, function) for use in around.uses_of(function.name))


def _exclude_each_other(one: ast.AST, other: ast.AST, around: Surroundings) -> bool:
    """Whether a test has one of two nodes run for one answer, and the second for the other."""
    answers = {ast.unparse(test): answer for test, answer in around.tests(one)}
    return any(answers.get(ast.unparse(test), answer) is not answer for test, answer in around.tests(other))
