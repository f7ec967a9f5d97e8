"""Libraries that drive accelerators other than CUDA's: what needs one of them never runs on the devices judged."""

from __future__ import annotations

import ast

LIBRARIES = frozenset(("torch_npu", "torch_xla", "torch_mlu", "torch_musa", "habana_frameworks"))


def needs_another(tree: ast.Module) -> bool:
    """Whether importing a file imports one of them, whatever the machine has: not under a test or a ``try``."""
    for statement in tree.body:
        if isinstance(statement, ast.Import) and any(_is_one(alias.name) for alias in statement.names):
            return True
        if isinstance(statement, ast.ImportFrom) and not statement.level and _is_one(statement.module or ""):
            return True
    return False


def _is_one(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES
