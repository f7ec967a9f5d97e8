"""Whose autocast the regions of a project are."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.names.torch_spellings import canonical
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
    name = canonical(name)
    if name != MODERN:
        return LEGACY.get(name, ("",))[0] == "cuda"
    named = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]
    return bool(named) and isinstance(named[0], ast.Constant) and str(named[0].value).partition(":")[0] == "cuda"
