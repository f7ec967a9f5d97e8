"""Whose autocast the regions of a project are, and where they switch it off."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.syntax.autocast_switches import enabled, regions
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references
from amplint.infer.torch_model.autocast import LEGACY, MODERN
from amplint.project.attributes import last_name
from amplint.project.files import matching, parsed

if TYPE_CHECKING:
    from amplint.project.scopes import Scope
    from amplint.source import Source

MAX_PARSED = 60
"""Files with regions that are looked into; where more have some, nothing is said."""
_MAY_OPEN = re.compile(rb"\bautocast\b")


def only_of_cuda(scope: Scope) -> bool:
    """Whether a whole project opens regions of autocast, and names CUDA for each: not so where anything else of that
    name is called, as a framework's, which knows other devices."""
    return scope.whole and _only_of_cuda(scope, contents.age())


@lru_cache(maxsize=64)
def _only_of_cuda(scope: Scope, age: int) -> bool:
    paths = matching(*scope, age, _MAY_OPEN)
    if not paths or len(paths) > MAX_PARSED:
        return False
    opened = [of_cuda for source in map(parsed, paths) if source is not None for of_cuda in _regions(source)]
    return bool(opened) and all(opened)


def _regions(source: Source) -> list[bool]:
    """For each region that a file opens, whether it names CUDA."""
    names = {id(found.call): found.name for found in references(source.tree) if found.call is not None}
    calls = (node for node in nodes_below(source.tree) if isinstance(node, ast.Call))
    return [_names_cuda(call, names.get(id(call), "")) for call in calls if last_name(call.func) == "autocast"]


def _names_cuda(call: ast.Call, name: str) -> bool:
    return _device(call, name) == "cuda"


def _device(call: ast.Call, name: str) -> str | None:
    """The device type that a region is written for; None where it is not written."""
    name = canonical(name)
    if name != MODERN:
        return LEGACY[name][0] if name in LEGACY else None
    named = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]
    written = next((one.value for one in named[:1] if isinstance(one, ast.Constant)), None)
    return str(written).partition(":")[0] if written is not None else None


def is_switched_off(tree: ast.Module, row: int, device: str) -> bool:
    """Whether the innermost region around a line that may be of a device switches autocast off."""
    switches = {id(call): enabled(call, name) for call, name in regions(tree) if _device(call, name) in (None, device)}
    around = [
        (node.lineno, place, switches[id(item.context_expr)])
        for node in (nodes_below(tree) if switches else ())
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.body[0].lineno <= row <= (node.end_lineno or row)
        for place, item in enumerate(node.items)
        if id(item.context_expr) in switches
    ]
    innermost = max(around, key=lambda region: region[:2])[2] if around else None
    return isinstance(innermost, ast.Constant) and innermost.value is False
