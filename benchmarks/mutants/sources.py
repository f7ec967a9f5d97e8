"""A library's file as operators see it: syntax tree, parents, names of imports, exact spans."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from mutants.edits import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class File:
    """One source file. Raises SyntaxError or ValueError where it cannot be parsed."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.tree = ast.parse(data)
        self.lines = data.splitlines(keepends=True)
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    @cached_property
    def imported(self) -> dict[str, str]:
        """What local names stand for, by the file's own imports: ``F`` is ``torch.nn.functional``."""
        names: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return names

    @cached_property
    def torch(self) -> str | None:
        """The name under which the file imports torch, None where it does not."""
        return next((name for name, meant in self.imported.items() if meant == "torch"), None)

    def name(self, node: ast.AST) -> str:
        """The dotted name that an expression is, with imports resolved; empty where it is none."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.name(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node."""
        return self.between(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)

    def between(self, row: int, column: int, end_row: int, end_column: int) -> str:
        """The source of a stretch."""
        lines = self.lines[row - 1 : end_row]
        lines[-1] = lines[-1][:end_column]
        lines[0] = lines[0][column:]
        return b"".join(lines).decode()

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """The edit that puts ``text`` in the place of a node."""
        return Edit(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, text)

    def before(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """The edit that puts ``text`` before a node."""
        return Edit(node.lineno, node.col_offset, node.lineno, node.col_offset, text)

    def after(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        """The edit that puts ``text`` behind a node."""
        row, column = node.end_lineno or 0, node.end_col_offset or 0
        return Edit(row, column, row, column, text)

    def without_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        """The edit that takes an argument out of a call, with one of the commas beside it."""
        arguments = sorted([*call.args, *call.keywords], key=lambda a: (a.lineno, a.col_offset))
        index = arguments.index(argument)
        end = (argument.end_lineno or 0, argument.end_col_offset or 0)
        if index > 0:
            before = arguments[index - 1]
            return Edit(before.end_lineno or 0, before.end_col_offset or 0, *end, "")
        if index + 1 < len(arguments):
            after = arguments[index + 1]
            return Edit(argument.lineno, argument.col_offset, after.lineno, after.col_offset, "")
        return Edit(argument.lineno, argument.col_offset, *end, "")

    def without_decorator(self, decorator: ast.expr) -> Edit:
        """The edit that takes a decorator away, and leaves its line empty."""
        edit = self.replace(decorator, "")
        return replace(edit, column=edit.column - 1)

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement."""
        return self.lines[statement.lineno - 1][: statement.col_offset].decode()

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The innermost function in whose body a node lies."""
        inner = node
        for above in self.above(node):
            if isinstance(above, FUNCTIONS) and isinstance(inner, ast.stmt) and inner in above.body:
                return above
            inner = above
        return None

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that holds a node."""
        if isinstance(node, ast.stmt):
            return node
        return next((above for above in self.above(node) if isinstance(above, ast.stmt)), None)

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class that holds a node."""
        return next((above for above in self.above(node) if isinstance(above, ast.ClassDef)), None)

    def calls(self) -> Iterator[ast.Call]:
        """Every call inside a function, in source order."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield node

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node within a function's body, in source order."""
        found = [
            node
            for function in ast.walk(self.tree)
            if isinstance(function, FUNCTIONS) and self.function(function) is None
            for statement in function.body
            for node in ast.walk(statement)
        ]
        return tuple(
            sorted(
                (node for node in found if isinstance(node, (ast.expr, ast.stmt))),
                key=lambda node: (node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)),
            )
        )

    def decorated(self) -> Iterator[tuple[Function, ast.expr]]:
        """Every decorator with its function."""
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS):
                for decorator in node.decorator_list:
                    yield node, decorator
