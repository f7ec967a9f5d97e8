"""What a file imports and reads, and which of the names that it reads nothing in it binds."""

from __future__ import annotations

import ast
import builtins


def unbound(text: str) -> set[str]:
    """Names that a file reads and that nothing in it binds."""
    tree = ast.parse(text)
    bound = {*dir(builtins), *(name for name, _ in imported(text))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return read(text) - bound


def read(text: str) -> set[str]:
    """The names that a file reads."""
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def imported(text: str) -> list[tuple[str, str]]:
    """What imports bind, and what it is, in the order of the file."""
    return [
        (alias.asname or alias.name.partition(".")[0], alias.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
