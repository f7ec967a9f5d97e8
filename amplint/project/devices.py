"""Whether a project sets the device that tensors are made on where none is named."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.syntax.references import references
from amplint.infer.syntax.scripts import is_test
from amplint.project.files import matching, parsed

if TYPE_CHECKING:
    from amplint.project.ways import Scope
    from amplint.source import Source

MAX_PARSED = 40
"""Files that may set a default device, and are looked into."""
_SETTERS = ("torch.set_default_device", "torch.set_default_tensor_type")
_MAY_SET = re.compile(rb"\bset_default_(?:device|tensor_type)\b|\bwith\b[^\n]*\bdevice\b")
_NOT_ONE = ("cpu", "meta")
"""Devices that no model computes on under another device's autocast."""


def sets_default_device(scope: Scope) -> bool:
    """Whether a file of a project that is no test calls ``torch.set_default_device`` or its like, or opens a ``with
    torch.device(...)``: what names no device may lie on that one, then."""
    return _is_set(scope, contents.age())


@lru_cache(maxsize=64)
def _is_set(scope: Scope, age: int) -> bool:
    paths = matching(*scope, age, _MAY_SET) or ()
    sources = (source for path in paths[:MAX_PARSED] if (source := parsed(path)) is not None)
    return any(_sets(source) and not is_test(source.tree) for source in sources)


def _sets(source: Source) -> bool:
    opened = {
        id(item.context_expr)
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    }
    called = ((found.name, found.call) for found in references(source.tree) if found.call is not None)
    return any(
        name in _SETTERS or (name == "torch.device" and id(call) in opened)
        for name, call in called
        if _may_be_one(call)
    )


def _may_be_one(call: ast.Call) -> bool:
    """Whether a call may name a device that models compute on."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return not any(isinstance(value, ast.Constant) and value.value in _NOT_ONE for value in given)
