"""Compiled extensions: which names of a file are one, and what is handed to it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.custom_autograd import role_of
from amplint.claims.disagreement import describe, suspects_of
from amplint.infer.state.facts import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.conflict import Conflict
    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import AutogradFunction, FileFacts

_COMPILED = re.compile(r"(^|_)(C|cuda|cpp|ext|extension)$")
"""How extension modules are named, as far as their last part goes; asked only of what has no Python file."""
_LOADERS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
CASTS = frozenset({"to", "float", "half", "double", "bfloat16", "type", "type_as"})
_DISPATCHES = ("dtype", "autocast")


def extensions(facts: FileFacts) -> Iterator[tuple[str, ast.AST]]:
    """The names of this file that are compiled extensions, or functions of one."""
    loaders = {id(r.call) for r in facts.references if r.call is not None and r.name in _LOADERS}
    for node in ast.walk(facts.source.tree):
        if isinstance(node, ast.Assign) and id(node.value) in loaders:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _COMPILED.search(alias.name.rpartition(".")[2]) and not _has_python(facts, alias.name, 0):
                    yield alias.asname or alias.name.partition(".")[0], node
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = f"{node.module}.{alias.name}" if node.module else alias.name
                of_extension = node.module and _COMPILED.search(node.module.rpartition(".")[2])
                inside = node.module if of_extension else module
                named = of_extension or _COMPILED.search(alias.name)
                if named and inside and not _has_python(facts, inside, node.level):
                    yield alias.asname or alias.name, node


def _has_python(facts: FileFacts, module: str, level: int) -> bool:
    """Whether a module of the project is Python; one that is outside the project counts as compiled."""
    folder = facts.path.parent
    for _ in range(level - 1):
        folder = folder.parent
    relative = module.replace(".", "/")
    folders = [folder] if level else [folder, *folder.parents][:6]
    return any((base / f"{relative}.py").exists() or (base / relative).is_dir() for base in folders)


def extension_call(facts: FileFacts, function: AutogradFunction, known: dict[str, ast.AST]) -> ast.Call | None:
    """The first call of an extension in forward that gets two of forward's own arguments, where forward casts none."""
    forward = function.forward
    assert forward is not None
    parameters = {argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args)[1:]}
    found: ast.Call | None = None
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and (node.attr in CASTS or any(mark in node.attr for mark in _DISPATCHES)):
            return None
        if isinstance(node, ast.keyword) and node.arg == "dtype":
            return None
        if found is None and isinstance(node, ast.Call) and _is_extension(facts, node.func, known):
            passed = {
                n.id for argument in node.args for n in ast.walk(argument) if isinstance(n, ast.Name)
            } & parameters
            found = node if len(passed) > 1 else None
    return found


def _is_extension(facts: FileFacts, callee: ast.expr, known: dict[str, ast.AST]) -> bool:
    base = callee
    while isinstance(base, ast.Attribute):
        base = base.value
    if isinstance(base, ast.Name) and base.id in known:
        return True
    return any(
        r.node is callee and r.name.startswith("torch.ops.") and ".aten." not in r.name for r in facts.references
    )


def handed_to_extensions(facts: FileFacts) -> Iterator[Suspect]:
    """What a compiled extension, or a Function that only passes it on to one, gets in several dtypes."""
    suspects = list(suspects_of(facts, Kind.EXTENSION))
    known = dict(extensions(facts)) if suspects else {}
    functions = {function.node.name: function for function in facts.autograd_functions}
    for suspect in suspects:
        conflict: Conflict = suspect.data
        callee = conflict.node.func if isinstance(conflict.node, ast.Call) else None
        if isinstance(callee, ast.Attribute) and callee.attr == "apply":
            function = functions.get(conflict.op.rpartition(".")[0])
            decorators = function.forward_decorators if function is not None else ()
            if function is None or function.forward is None or any(role_of(d.name) for d in decorators):
                continue
            if extension_call(facts, function, known) is None:
                continue
        elif callee is None or not _is_extension(facts, callee, known):
            continue
        left, right = conflict.left, conflict.right
        operands = (
            f"{describe(conflict, left, conflict.left_dtype)} and {describe(conflict, right, conflict.right_dtype)}"
        )
        message = f"{conflict.op} hands a compiled kernel {operands}, which nothing casts"
        yield replace(suspect, message=message, data=None)
