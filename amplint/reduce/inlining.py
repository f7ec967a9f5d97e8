"""A file with what it imports from its own project in it, so that it stands alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.names.folders import root_of
from amplint.project.files import parsed
from amplint.project.imports import module_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES = 20


def with_imports(tree: ast.Module, path: Path) -> ast.Module | None:
    """The tree with the statements of imported files in the place of ``from ... import``; None where there are none.

    Names may come to stand for something else than before: what is found in it shows whether that matters.
    """
    inlining = _Inlining(path)
    body = list(inlining.statements(tree.body, path))
    if len(inlining.done) == 1:
        return None
    future = [one for one in body if isinstance(one, ast.ImportFrom) and one.module == "__future__"][:1]
    rest = [one for one in body if not (isinstance(one, ast.ImportFrom) and one.module == "__future__")]
    return ast.Module([*future, *rest], [])


class _Inlining:
    def __init__(self, path: Path) -> None:
        self.done = {path}
        self._root, _ = root_of(path.parent)

    def statements(self, body: list[ast.stmt], path: Path) -> Iterator[ast.stmt]:
        for statement in body:
            found = self._imported(statement, path) if isinstance(statement, ast.ImportFrom) else None
            if found is None or not isinstance(statement, ast.ImportFrom):
                yield statement
                continue
            if found not in self.done:
                self.done.add(found)
                module = parsed(found)
                if module is not None:
                    fresh = ast.parse(module.text.removeprefix("\ufeff"))
                    yield from self.statements([one for one in fresh.body if not _is_script(one)], found)
            for alias in statement.names:
                if alias.asname is not None and alias.asname != alias.name:
                    target = ast.Name(alias.asname, ast.Store())
                    yield ast.Assign([target], ast.Name(alias.name, ast.Load()), lineno=statement.lineno)

    def _imported(self, statement: ast.ImportFrom, path: Path) -> Path | None:
        """The project's file that names are imported from; None where it is another, or a name may be a module."""
        if len(self.done) >= MAX_FILES or any(alias.name == "*" for alias in statement.names):
            return None
        parts = path.parent.relative_to(self._root).parts
        base = parts[: len(parts) + 1 - statement.level] if statement.level else ()
        name = ".".join([*base, *filter(None, [statement.module])])
        found = module_file(self._root, name) if name else None
        if found is None or any(module_file(self._root, f"{name}.{alias.name}") for alias in statement.names):
            return None
        return found


def _is_script(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
