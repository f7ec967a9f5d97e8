"""Where the code lies that an import brings, as the files on disk say."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.infer.names.namespace import Namespace


class TakenFrom(Enum):
    """Python source of the project; compiled code of the project, which has no source; or another package."""

    SOURCE = 0
    COMPILED = 1
    ELSEWHERE = 2


def taken_from(importer: Namespace, alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> TakenFrom:
    """What one name of an import statement leads to; source where it leads out of the folders that are known."""
    find, level = importer.project.find, 0
    name, inside = alias.name, False
    if isinstance(statement, ast.ImportFrom):
        level, base = statement.level, importer.module_of(statement)
        name, module = f"{base}.{alias.name}".lstrip("."), find(base, importer)
        inside = module is not None and (alias.name in module.bindings or bool(module.stars))
    if inside or level > len(importer.package.split(".")) or find(name, importer) is not None:
        return TakenFrom.SOURCE
    own = level > 0 or find(name.partition(".")[0], importer) is not None
    return TakenFrom.COMPILED if own else TakenFrom.ELSEWHERE
