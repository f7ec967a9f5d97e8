"""Which name means what in a Python file: imports, constants, and variables with one value."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


@dataclass(slots=True)
class Binding:
    """How a scope binds a name: by imports (their targets), by one plain assignment (its value), or otherwise."""

    imports: list[str] = field(default_factory=list)
    value: ast.expr | None = None
    others: int = 0

    @property
    def plain(self) -> bool:
        """One assignment, that always happens, and nothing else."""
        return self.value is not None and not self.others and not self.imports


class Scope:
    """A module, class or function: what it binds, and the scope around it."""

    def __init__(self, node: ast.AST, outer: Scope | None, number: int) -> None:
        self.node = node
        self.outer = outer
        self.number = number
        self.bindings: dict[str, Binding] = {}
        self._declared: set[str] = set()
        if isinstance(node, _FUNCTIONS):
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self._other(argument.arg)
            for extra in (arguments.vararg, arguments.kwarg):
                if extra is not None:
                    self._other(extra.arg)
        for statement in _body(node):
            self._statement(statement, certain=True)
        for name in self._declared:
            self._other(name)

    def find(self, name: str) -> tuple[Scope, Binding] | None:
        """The binding that a name read in this scope refers to; class scopes around functions do not count."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope, scope.bindings[name]
            scope = scope.outer
        return None

    def qualified(self, node: ast.expr) -> list[str]:
        """The dotted names that an expression may have by the file's imports; more than one for fallback imports."""
        if isinstance(node, ast.Attribute):
            return [f"{base}.{node.attr}" for base in self.qualified(node.value)]
        if not isinstance(node, ast.Name):
            return []
        found = self.find(node.id)
        if found is None or found[1].others or found[1].value is not None:
            return []
        return found[1].imports

    def _binding(self, name: str) -> Binding:
        return self.bindings.setdefault(name, Binding())

    def _other(self, name: str) -> None:
        self._binding(name).others += 1

    def _statement(self, node: ast.stmt, *, certain: bool) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    binding = self._binding(target.id)
                    if certain and binding.value is None:
                        binding.value = node.value
                    else:
                        binding.others += 1
                else:
                    self._expression(target)
            self._expression(node.value)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._binding(name).imports.append(alias.name if alias.asname else name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = "." * node.level + (node.module or "")
                self._binding(alias.asname or alias.name).imports.append(f"{module}.{alias.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._other(node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self._declared.update(node.names)
        else:
            self._children(node, certain=certain)

    def _children(self, node: ast.stmt, *, certain: bool) -> None:
        straight = isinstance(node, ast.With | ast.AsyncWith) or is_main_guard(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self._statement(child, certain=certain and straight)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                if isinstance(child, ast.ExceptHandler) and child.name:
                    self._other(child.name)
                for inner in ast.iter_child_nodes(child):
                    if isinstance(inner, ast.stmt):
                        self._statement(inner, certain=False)
                    else:
                        self._expression(inner)
            else:
                self._expression(child)

    def _expression(self, node: ast.AST) -> None:
        """Names that an expression or a pattern binds."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
                self._other(child.id)
            elif isinstance(child, ast.MatchAs | ast.MatchStar) and child.name:
                self._other(child.name)
            elif isinstance(child, ast.MatchMapping) and child.rest:
                self._other(child.rest)


def is_main_guard(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":``."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
        and not node.orelse
    )


def scopes_of(tree: ast.Module) -> dict[ast.AST, Scope]:
    """Every scope of a file by the node that opens it."""
    found: dict[ast.AST, Scope] = {tree: Scope(tree, None, 0)}
    waiting: list[tuple[ast.AST, Scope]] = [(tree, found[tree])]
    while waiting:
        node, scope = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, _SCOPES):
                inner = found[child] = Scope(child, scope, len(found))
            waiting.append((child, inner))
    return found


def _body(node: ast.AST) -> Iterator[ast.stmt]:
    body = getattr(node, "body", ())
    if isinstance(body, list):
        yield from body
