"""Compiled extensions, known by use: a Function hands two tensors to what no Python source of the project defines."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from amplint.claims.custom_autograd import role_of
from amplint.claims.disagreement import suspects_of
from amplint.claims.surroundings import Surroundings, holds_tensor
from amplint.infer.names.taken_from import TakenFrom
from amplint.infer.state.facts import Kind
from amplint.infer.syntax.packages import package_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.conflict import Conflict
    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.function_facts import AutogradFunction

_LOADERS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
CASTS = frozenset({"to", "float", "half", "double", "bfloat16", "type", "type_as"})
_SAME = frozenset(("contiguous", "data", "data_ptr", "detach", "view", "reshape", "flatten", "clone", "cuda"))
"""Attributes of a tensor that are that tensor to a kernel."""
_TENSORS_ALONE = frozenset((*_SAME, "shape", "size", "new_zeros", "new_empty", "is_contiguous", "stride", "device"))
_PYTHON = frozenset((*sys.stdlib_module_names, "numpy"))
"""Packages that have no kernels for tensors."""


def extension_call(facts: FileFacts, function: AutogradFunction, *, of_tensors: bool = False) -> ast.Call | None:
    """The first call in forward that hands two of its tensors to what cannot be read, where forward casts none.

    ``of_tensors``: it is known from a caller that tensors are passed; else forward itself has to show which are.
    """
    forward = function.forward
    assert forward is not None
    around = Surroundings.of(facts.source.tree)
    tensors = _tensors(forward, every=of_tensors)
    found: ast.Call | None = None
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and (node.attr in CASTS or node.attr == "dtype"):
            return None
        if isinstance(node, ast.keyword) and node.arg == "dtype":
            return None
        if isinstance(node, ast.expr) and "autocast" in around.torch_name(node):
            return None
        if found is None and isinstance(node, ast.Call) and len({*map(_handed, node.args)} & tensors) > 1:
            found = node if _lies_in(facts, around, node.func) is not TakenFrom.SOURCE else None
    return found


def _tensors(forward: ast.FunctionDef, *, every: bool) -> set[str]:
    """The parameters, or those that forward annotates as tensors, saves, or asks what only tensors have."""
    parameters = [*forward.args.posonlyargs, *forward.args.args][1:]
    found = {a.arg for a in parameters if every or (a.annotation is not None and holds_tensor(a.annotation))}
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and node.attr in _TENSORS_ALONE and isinstance(node.value, ast.Name):
            found.add(node.value.id)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward":
            found.update(name.id for name in node.args if isinstance(name, ast.Name))
    return found & {a.arg for a in parameters}


def _handed(node: ast.expr) -> str | None:
    """The variable whose tensor an argument is: ``x``, ``x.contiguous()``, ``x.data_ptr()``."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr not in _SAME:
            return None
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _lies_in(facts: FileFacts, around: Surroundings, callee: ast.expr) -> TakenFrom:
    """Where the code of a callee lies: what the file loads or registered with torch is compiled."""
    name = around.torch_name(callee)
    if name:
        return TakenFrom.COMPILED if name.startswith("torch.ops.") and ".aten." not in name else TakenFrom.SOURCE
    imported = around.imported(callee)
    if imported is not None:
        return TakenFrom.SOURCE if package_of(*imported) in _PYTHON else facts.taken_from(*imported)
    root = callee
    while isinstance(root, ast.Attribute):
        root = root.value
    given = around.given(root) if isinstance(root, ast.Name) else []
    loaded = any(isinstance(value, ast.Call) and around.torch_name(value.func) in _LOADERS for value in given)
    return TakenFrom.COMPILED if loaded else TakenFrom.SOURCE


def handed_to_extensions(facts: FileFacts) -> Iterator[Suspect]:
    """What compiled code of the project, or a Function that only passes it on to a kernel, gets in several dtypes."""
    around = Surroundings.of(facts.source.tree)
    functions = {function.node.name: function for function in facts.autograd_functions}
    for suspect in suspects_of(facts, Kind.EXTENSION):
        conflict: Conflict = suspect.data
        callee = conflict.node.func if isinstance(conflict.node, ast.Call) else None
        if isinstance(callee, ast.Attribute) and callee.attr == "apply":
            function = functions.get(conflict.op.rpartition(".")[0])
            decorators = function.forward_decorators if function is not None else ()
            if function is None or function.forward is None or any(role_of(d.name) for d in decorators):
                continue
            if extension_call(facts, function, of_tensors=True) is not None:
                yield suspect
        elif callee is not None and _lies_in(facts, around, callee) is TakenFrom.COMPILED:
            yield suspect
