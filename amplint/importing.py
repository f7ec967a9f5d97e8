"""How a torch object is spelled in one file, and the import that makes it available where it is missing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADED_WITH_TORCH = frozenset(
    {"torch.amp", "torch.autograd", "torch.backends", "torch.cuda", "torch.cuda.amp", "torch.cpu", "torch.cpu.amp"}
    | {"torch.linalg", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.optim"}
)
"""Modules that ``import torch`` alone makes reachable as attributes."""


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


@dataclass(frozen=True, slots=True)
class _Binding:
    """What an import statement binds: ``target`` is the dotted name of the object, ``usable`` whether all of the file
    sees it when it runs."""

    target: str
    loads: str
    usable: bool


class Imports:
    """The names that one file binds by import, and those it binds in any other way."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._bindings: dict[str, set[_Binding]] = {}
        self._shadowed: set[str] = set()
        tree = source.tree
        self._read(tree.body, top=True)
        self._collect_other_names(tree)

    def spell(self, module: str, name: str | None = None) -> tuple[str, list[Edit]]:
        """The expression for ``module.name`` (or the module itself), and the edits that import it where needed."""
        wanted = f"{module}.{name}" if name else module
        for local, target in sorted(self._usable(), key=lambda pair: -len(pair[1])):
            if wanted == target:
                return local, []
            if wanted.startswith(target + ".") and self._reachable(local, target, module):
                return local + wanted[len(target) :], []
        root = module.partition(".")[0]
        if name is None:
            local = self._free(root)
            if local == root:
                return module, [self._insert(f"import {module}")]
            return local, [self._insert(f"import {module} as {local}")]
        if self._is_free(name):
            return name, [self._insert(f"from {module} import {name}")]
        if self._is_free(root) and (module == root or module in _LOADED_WITH_TORCH):
            return wanted, [self._insert(f"import {root}")]
        local = self._free(f"{root}_{name}")
        return local, [self._insert(f"from {module} import {name} as {local}")]

    def _usable(self) -> Iterator[tuple[str, str]]:
        for local, bindings in self._bindings.items():
            targets = {binding.target for binding in bindings}
            if local not in self._shadowed and len(targets) == 1 and any(b.usable for b in bindings):
                yield local, targets.pop()

    def _reachable(self, local: str, target: str, module: str) -> bool:
        """Whether ``module`` is an attribute path of what ``local`` names, and loaded."""
        if module in (target, *_LOADED_WITH_TORCH) or target.startswith(module + "."):
            return True
        return any(b.usable and (b.loads == module or b.loads.startswith(module + ".")) for b in self._bindings[local])

    def _is_free(self, name: str) -> bool:
        return name not in self._bindings and name not in self._shadowed

    def _free(self, name: str) -> str:
        while not self._is_free(name):
            name = f"_{name}"
        return name

    def _read(self, body: list[ast.stmt], *, top: bool) -> None:
        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    target = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._bind(alias.asname or target, target, alias.name, top)
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    self._bind(alias.asname or alias.name, f"{module}.{alias.name}", module, top)
            elif isinstance(node, ast.Try):
                self._read([*node.body, *node.orelse, *node.finalbody], top=top)
                for handler in node.handlers:
                    self._read(handler.body, top=False)
            elif isinstance(node, ast.If):
                self._read(node.body, top=top and "TYPE_CHECKING" not in ast.dump(node.test))
                self._read(node.orelse, top=False)
            else:
                for child in ast.iter_child_nodes(node):
                    self._read_nested(child)

    def _read_nested(self, node: ast.AST) -> None:
        for statement in nodes_of_kind(node, ast.Import, ast.ImportFrom):
            self._read([statement], top=False)

    def _bind(self, local: str, target: str, loads: str, usable: bool) -> None:
        self._bindings.setdefault(local, set()).add(_Binding(target, loads, usable))

    def _collect_other_names(self, tree: ast.Module) -> None:
        fallbacks = {
            id(child)
            for node in tree.body
            if isinstance(node, ast.Try)
            for handler in node.handlers
            for child in ast.walk(handler)
        }
        for node in nodes_below(tree):
            if node.__class__ is ast.Constant or node.__class__ is ast.Attribute:
                continue
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load) and id(node) not in fallbacks:
                    self._shadowed.add(node.id)
            elif isinstance(node, ast.arg):
                self._shadowed.add(node.arg)
            elif isinstance(node, _NAMED):
                if node.name:
                    self._shadowed.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._shadowed.add(node.rest)

    def _insert(self, statement: str) -> Edit:
        """The statement on a line of its own after the docstring and the imports at the head of the file."""
        body = self._source.tree.body
        last: ast.stmt | None = None
        for index, node in enumerate(body):
            docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring or isinstance(node, ast.Import | ast.ImportFrom):
                last = node
            elif not isinstance(node, ast.Try | ast.If):
                break
        if last is None:
            row = min((_first_row(node) for node in body[:1]), default=len(self._source.lines) + 1)
            return self._edit(row, f"{statement}\n")
        row = (last.end_lineno or last.lineno) + 1
        if isinstance(last, ast.Expr) or (isinstance(last, ast.ImportFrom) and last.module == "__future__"):
            return self._edit(row, f"\n{statement}\n")
        return self._edit(row, f"{statement}\n")

    def _edit(self, row: int, text: str) -> Edit:
        lines = self._source.lines
        if row > len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
            place = Location(len(lines), len(lines[-1]) + 1)
            return Edit(Span(place, place), "\n" + text)
        return Edit(Span(Location(row, 1), Location(row, 1)), text)


def _first_row(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
