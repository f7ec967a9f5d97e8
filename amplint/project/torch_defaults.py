"""What a project sets for tensors that are made without a device, or without a dtype."""

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
    from collections.abc import Iterator

    from amplint.project.scopes import Scope
    from amplint.source import Source

MAX_PARSED = 40
"""Files that may set a default, and are looked into."""
_DEVICE = ("torch.set_default_device", "torch.set_default_tensor_type")
_MAY_SET_DEVICE = re.compile(rb"\bset_default_(?:device|tensor_type)\b|\bwith\b[^\n]*\bdevice\b")
_NOT_ONE = ("cpu", "meta")
"""Devices that no model computes on under another device's autocast."""
_DTYPE = ("torch.set_default_dtype", "torch.set_default_tensor_type")
_MAY_SET_DTYPE = re.compile(rb"\bset_default_(?:dtype|tensor_type)\b")
_IN_FLOAT32 = ("torch.float32", "torch.float", "torch.FloatTensor", "torch.cuda.FloatTensor")


def sets_default_device(scope: Scope) -> bool:
    """Whether a file of a project that is no test calls ``torch.set_default_device`` or its like, or opens a ``with
    torch.device(...)``: what names no device may lie on that one, then."""
    return _sets_device(scope, contents.age())


def sets_default_dtype(scope: Scope) -> bool:
    """Whether a file of a project that is no test calls ``torch.set_default_dtype`` or its like at its top level, with
    what is not float32, or not known to be: importing it changes what is made without a dtype anywhere."""
    return _sets_dtype(scope, contents.age())


@lru_cache(maxsize=64)
def _sets_device(scope: Scope, age: int) -> bool:
    return any(_is_device_set(source) for source in _sources(scope, age, _MAY_SET_DEVICE))


@lru_cache(maxsize=64)
def _sets_dtype(scope: Scope, age: int) -> bool:
    return any(_is_dtype_set(source) for source in _sources(scope, age, _MAY_SET_DTYPE))


def _sources(scope: Scope, age: int, pattern: re.Pattern[bytes]) -> Iterator[Source]:
    """The files of a project that have a pattern and are no tests."""
    for path in (matching(*scope, age, pattern) or ())[:MAX_PARSED]:
        source = parsed(path)
        if source is not None and not is_test(source.tree):
            yield source


def _is_device_set(source: Source) -> bool:
    opened = {
        id(item.context_expr)
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.With, ast.AsyncWith))
        for item in node.items
    }
    called = ((found.name, found.call) for found in references(source.tree) if found.call is not None)
    return any(
        not any(isinstance(value, ast.Constant) and value.value in _NOT_ONE for value in _given(call))
        for name, call in called
        if name in _DEVICE or (name == "torch.device" and id(call) in opened)
    )


def _is_dtype_set(source: Source) -> bool:
    found = references(source.tree)
    names = {id(reference.node): reference.name for reference in found}
    top = {id(statement.value) for statement in source.tree.body if isinstance(statement, ast.Expr)}
    calls = (f.call for f in found if f.name in _DTYPE and f.call is not None and id(f.call) in top)
    given = [value for call in calls for value in _given(call)]
    said = (value.value if isinstance(value, ast.Constant) else names.get(id(value)) for value in given)
    return any(what not in _IN_FLOAT32 for what in said)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]
