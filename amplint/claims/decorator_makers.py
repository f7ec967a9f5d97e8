"""Files that make ``custom_fwd`` and ``custom_bwd`` for the Functions of other files."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.custom_autograd import autocast_scenarios, role_of
from amplint.claims.on_cuda import on_cuda
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts


def fixed_devices(facts: FileFacts) -> Iterator[Suspect]:
    """The first decorator that a file without Functions makes for one device, whichever its users run on.

    ``functools.partial(torch.amp.custom_fwd, device_type="cuda")``, or the decorator itself kept or returned.
    """
    if facts.autograd_functions:
        return
    around = Surroundings.of(facts.source.tree)
    for reference in facts.references:
        role = role_of(reference.name)
        if role is None or not reference.name.startswith("torch.amp.") or isinstance(reference.node, ast.alias):
            continue
        call = reference.call or _partial(around, reference.node)
        device = _device(call) if call is not None and reference.decorates is None else None
        if call is None or device is None or on_cuda(call, around) or _decorates_here(facts, around, call):
            continue
        message = f"this {role} takes {device}'s autocast state for every Function, on other devices too"
        yield likely_loss(facts, call, message, autocast_scenarios(facts))
        return


def _decorates_here(facts: FileFacts, around: Surroundings, call: ast.Call) -> bool:
    """Whether the function around, or the variable that the decorator is kept in, decorates something in the file."""
    function, parent = around.function(call), around.parent(call)
    names = {function.name} if function is not None else set()
    if isinstance(parent, ast.Assign):
        names |= {target.id for target in parent.targets if isinstance(target, ast.Name)}
    functions = nodes_of_kind(facts.source.tree, ast.FunctionDef, ast.AsyncFunctionDef)
    written = (decorator for function in functions for decorator in function.decorator_list)
    return any(isinstance(part, ast.Name) and part.id in names for d in written for part in ast.walk(d))


def _partial(around: Surroundings, node: ast.expr) -> ast.Call | None:
    """The ``functools.partial`` that a decorator is the first argument of."""
    parent = around.parent(node)
    if not isinstance(parent, ast.Call) or not parent.args or parent.args[0] is not node:
        return None
    name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
    return parent if name == "partial" else None


def _device(call: ast.Call) -> str | None:
    """The device type that is written out."""
    for keyword in call.keywords:
        if keyword.arg == "device_type" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return None
