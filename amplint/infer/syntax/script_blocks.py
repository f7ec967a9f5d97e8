"""What stands below ``if __name__ == "__main__":``: no import runs it, so only the script decides its precision."""

from __future__ import annotations

import ast
import re

from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references

_OF_TORCH = ("autocast", "GradScaler", "float16", "bfloat16", "half", "set_default_dtype")
_ATTRIBUTES = frozenset(("half", "bfloat16", "autocast", "dtype", "torch_dtype"))
_KEYWORDS = frozenset(("dtype", "torch_dtype", "precision", "mixed_precision", "fp16", "bf16", "amp"))
_SETTING = re.compile(r"b?fp?16|b?float16|half|amp|16-(mixed|true)|bf16-(mixed|true)")
"""Parts of torch, attributes, keywords and strings by which code asks for low precision."""


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
    """Whether a block names a dtype or autocast, passes a precision, or has it as a string."""
    for node in nodes_below(block):
        if any(part in _OF_TORCH for part in names.get(id(node), "").split(".")):
            return True
        if isinstance(node, ast.Attribute):
            asks = node.attr in _ATTRIBUTES
        elif isinstance(node, ast.keyword):
            asks = node.arg in _KEYWORDS
        else:
            word = node.value if isinstance(node, ast.Constant) else None
            asks = isinstance(word, str) and _SETTING.fullmatch(word.lower().lstrip("-")) is not None
        if asks:
            return True
    return False
