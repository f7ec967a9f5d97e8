"""What stands below ``if __name__ == "__main__":``: no import runs it, so only the script decides its precision."""

from __future__ import annotations

import ast

from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references

_OF_TORCH = ("autocast", "GradScaler", "float16", "bfloat16", "half", "set_default_dtype")
_ATTRIBUTES = frozenset(("half", "bfloat16", "autocast", "dtype", "torch_dtype"))
_KEYWORDS = frozenset(("dtype", "torch_dtype", "precision", "mixed_precision", "fp16", "bf16"))
"""Parts of torch, attributes and keywords by which code asks for low precision."""


def untouched_definitions(tree: ast.Module) -> tuple[tuple[int, int], ...]:
    """First and last lines of the classes and functions that such a block defines and gives no low precision.

    A block that mentions a dtype or autocast may give them one.
    """
    found = []
    blocks = [item for item in tree.body if isinstance(item, ast.If) and "__main__" in ast.unparse(item.test)]
    names = {id(reference.node): reference.name for reference in references(tree)} if blocks else {}
    for block in blocks:
        if _asks(block, names):
            continue
        defined = [s for s in block.body if isinstance(s, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
        found += [(statement.lineno, statement.end_lineno or statement.lineno) for statement in defined]
    return tuple(found)


def _asks(block: ast.If, names: dict[int, str]) -> bool:
    """Whether a block names a dtype or autocast, or passes a precision."""
    for node in nodes_below(block):
        if any(part in _OF_TORCH for part in names.get(id(node), "").split(".")):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            return True
        if isinstance(node, ast.keyword) and node.arg in _KEYWORDS:
            return True
    return False
