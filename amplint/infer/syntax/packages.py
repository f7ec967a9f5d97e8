"""Which package an import is from."""

from __future__ import annotations

import ast


def package_of(alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> str:
    """The package that an import takes something from; empty for a relative one."""
    module = alias.name if isinstance(statement, ast.Import) else "" if statement.level else statement.module or ""
    return module.partition(".")[0]
