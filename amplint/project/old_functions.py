"""Whether an autograd Function is only used as torch before 1.5 had it: an object of it is called, which raises now.

``SparseMM()(a, b)`` with a ``forward`` that is no static method: "Legacy autograd function with non-static forward
method is deprecated". ``SparseMM.apply(a, b)`` runs, static or not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.project.attributes import is_static
from amplint.project.mentions import Function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.state.function_facts import AutogradFunction
    from amplint.project.ways import Ways


def only_called(ways: Ways, row: int, functions: Iterable[AutogradFunction]) -> bool:
    """Whether a line stands in a Function whose ``forward`` is no static method, and all that mentions it calls it; one
    mention is seen."""
    cls = ways.target(row)
    if not isinstance(cls, ast.ClassDef) or all(function.node is not cls for function in functions):
        return False
    forward = next((s for s in cls.body if isinstance(s, Function) and s.name == "forward"), None)
    users = ways.users(ways.file, cls.name) if forward is not None and not is_static(forward) else None
    others = [mention for _, mention in users or () if mention.definition is not cls]
    return bool(others) and all(mention.called for mention in others)
