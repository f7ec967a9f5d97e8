"""What stands below ``if __name__ == "__main__":``: no import runs it, so only the script decides its precision."""

from __future__ import annotations

import ast
import re

from amplint.infer.bodies import nodes_below

_PRECISION = re.compile(r"autocast|half|float16|bf16|fp16|dtype|precision|scaler|(^|[^a-z])amp([^a-z]|$)")


def untouched_definitions(tree: ast.Module) -> tuple[tuple[int, int], ...]:
    """First and last lines of the classes and functions that such a block defines and gives no low precision.

    A block that mentions a dtype or autocast may give them one.
    """
    found = []
    for block in tree.body:
        if not isinstance(block, ast.If) or "__main__" not in ast.unparse(block.test) or _asks(block):
            continue
        defined = [s for s in block.body if isinstance(s, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
        found += [(statement.lineno, statement.end_lineno or statement.lineno) for statement in defined]
    return tuple(found)


def _asks(block: ast.If) -> bool:
    """Whether a name, an attribute, a keyword or a text in a block is about precision."""
    for node in nodes_below(block):
        for field in ("id", "attr", "arg", "value"):
            word = getattr(node, field, None)
            if isinstance(word, str) and _PRECISION.search(word.lower()):
                return True
    return False
