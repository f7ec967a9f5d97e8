"""Whether importing a project sets another default dtype than float32."""

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
"""Files that may set a default dtype, and are looked into."""
_SETTERS = ("torch.set_default_dtype", "torch.set_default_tensor_type")
_MAY_SET = re.compile(rb"^(?:[\w.]+\.)?set_default_(?:dtype|tensor_type)\b", re.MULTILINE)
_FLOAT32 = re.compile(r"\b(?:float32|float|(?:cuda\.)?FloatTensor)\b['\"]?$")


def sets_default_dtype(scope: Scope) -> bool:
    """Whether a file of a project that is no test calls ``torch.set_default_dtype`` or its like at its top level, with
    something that is not float32: what is made without a dtype is not float32, then."""
    return _is_set(scope, contents.age())


@lru_cache(maxsize=64)
def _is_set(scope: Scope, age: int) -> bool:
    paths = matching(*scope, age, _MAY_SET) or ()
    sources = (source for path in paths[:MAX_PARSED] if (source := parsed(path)) is not None)
    return any(_sets(source) and not is_test(source.tree) for source in sources)


def _sets(source: Source) -> bool:
    top = {id(statement.value) for statement in source.tree.body if isinstance(statement, ast.Expr)}
    calls = (found.call for found in references(source.tree) if found.name in _SETTERS and found.call is not None)
    given = (value for call in calls if id(call) in top for value in (*call.args, *(k.value for k in call.keywords)))
    return any(not _FLOAT32.search(ast.unparse(value)) for value in given)
