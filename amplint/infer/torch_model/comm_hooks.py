"""Communication hooks of DistributedDataParallel: what they get is a bucket of gradients.

A function is one where its parameter is annotated ``GradBucket``, or where its file hands it to
``register_comm_hook(state, hook)`` and it asks the parameter for its ``buffer()`` or ``gradients()``
(https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html). A bucket's buffer has the dtype of its gradients.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import Builtin, Sequence, Trait, Value
from amplint.infer.names.annotations import last_name
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from amplint.infer.names.definitions import Function
    from amplint.infer.state.frame import Frame
    from amplint.source import Source

BUCKET = Builtin("GradBucket")
_REGISTER = "register_comm_hook"
_CONTENTS = ("buffer", "gradients")


def takes_bucket(function: Function, parameter: ast.arg) -> bool:
    """Whether a parameter of a function is a bucket of gradients."""
    annotation = parameter.annotation
    if annotation is not None:
        return last_name(annotation) == "GradBucket"
    if function.name not in _registered(function.namespace.source):
        return False
    asked = {
        (node.func.value.id, node.func.attr)
        for node in nodes_below(function.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    return any((parameter.arg, name) in asked for name in _CONTENTS)


@lru_cache(maxsize=8)
def _registered(source: Source) -> frozenset[str]:
    """Names of the functions that a file registers as hooks."""
    if _REGISTER not in source.text:
        return frozenset()
    calls = [
        node
        for node in nodes_below(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _REGISTER
    ]
    hooks = [*(call.args[1] for call in calls if len(call.args) > 1)]
    hooks += [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "hook"]
    return frozenset(name for hook in hooks if (name := last_name(hook)) is not None)


def attribute(name: str) -> Builtin:
    """A method of a bucket."""
    return Builtin(f"{BUCKET.name}.{name}")


def contents(frame: Frame, name: str) -> Value | None:
    """What such a method gives; None for a callable that is none."""
    gradient = frame.session.gradient(Trait.BUCKET)
    return {
        f"{BUCKET.name}.buffer": gradient,
        f"{BUCKET.name}.gradients": Sequence(None, gradient),
    }.get(name)
