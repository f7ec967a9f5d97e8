"""A program with other imports: ``torch`` under another name, or what is used of it imported by name."""

from __future__ import annotations

import ast
import builtins
import importlib


def aliased(text: str) -> str:
    """``import torch`` becomes ``import torch as th``."""
    return ast.unparse(_Aliased().visit(ast.parse(text)))


def by_name(text: str) -> str:
    """``torch.nn.functional.pad`` becomes ``pad``, which is imported by name, as ``pad_`` where ``pad`` is taken."""
    tree = ast.parse(text)
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(dir(builtins))
    taken |= {getattr(node, "name", "") or getattr(node, "arg", "") or "" for node in ast.walk(tree)}
    spelled = _ByName(taken)
    tree = spelled.visit(tree)
    lines = [f"from {module} import {name}{spelled.renamed(name)}" for module, name in sorted(spelled.imported)]
    return "\n".join([*lines, ast.unparse(tree)])


class _Aliased(ast.NodeTransformer):
    def visit_alias(self, node: ast.alias) -> ast.alias:
        return ast.alias("torch", "th") if node.name == "torch" and node.asname is None else node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("th", node.ctx) if node.id == "torch" else node


class _ByName(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.imported: set[tuple[str, str]] = set()
        self._taken = set(taken)

    def renamed(self, name: str) -> str:
        return f" as {name}_" if name in self._taken else ""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        parts = ast.unparse(node).split(".")
        found = _module_of(parts) if parts[0] == "torch" and isinstance(node.ctx, ast.Load) else None
        if found is None:
            return self.generic_visit(node)
        module, (name, *rest) = found
        if any(other != module for other, known in self.imported if known == name):
            return node
        self.imported.add((module, name))
        local = f"{name}_" if name in self._taken else name
        return ast.parse(".".join([local, *rest]), mode="eval").body


def _module_of(parts: list[str]) -> tuple[str, list[str]] | None:
    """The longest module that a path begins with, and the rest of it."""
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        return (".".join(parts[:end]), parts[end:]) if hasattr(module, parts[end]) else None
    return None


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
