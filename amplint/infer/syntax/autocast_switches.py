"""The flags of a file's own code that switch its autocast regions: ``with torch.autocast("cuda", enabled=self.amp)``.

Who converts the weights leaves them off: a region casts float32 weights at each operation, and there is nothing to cast
in a model that is low precision already.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEGACY = ("torch.cuda.amp.", "torch.cpu.amp.")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def autocast_switches(tree: ast.Module) -> dict[int, frozenset[str]]:
    """By the ``id`` of a function, the variables and attributes that switch a region in it, or, for attributes of its
    object, in its class."""
    found_there = ((call, enabled(call, name)) for call, name in regions(tree))
    given = [(call, switch) for call, switch in found_there if isinstance(switch, ast.Name | ast.Attribute)]
    found: dict[int, frozenset[str]] = {}
    for around in nodes_below(tree) if given else ():
        if isinstance(around, _Function):
            inside = [switch for call, switch in given if _encloses(around, call)]
            found[id(around)] = found.get(id(around), frozenset()).union(map(ast.unparse, inside))
        elif isinstance(around, ast.ClassDef):
            inside = [switch for call, switch in given if _encloses(around, call)]
            shared = {ast.unparse(switch) for switch in inside if isinstance(switch, ast.Attribute)}
            for method in around.body:
                if isinstance(method, _Function):
                    found[id(method)] = found.get(id(method), frozenset()) | shared
    return found


def regions(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """The calls of torch's autocast classes, each with the name of the class."""
    for reference in references(tree):
        if reference.call is not None and reference.name.startswith("torch.") and reference.name.endswith(".autocast"):
            yield reference.call, reference.name


def enabled(call: ast.Call, name: str) -> ast.expr | None:
    """What a region is given that says whether autocast is on in it, if anything is."""
    position = 0 if name.startswith(_LEGACY) else 2
    given = call.args[position] if len(call.args) > position else None
    return next((keyword.value for keyword in call.keywords if keyword.arg == "enabled"), given)


def _encloses(around: _Function | ast.ClassDef, call: ast.Call) -> bool:
    return around.lineno <= call.lineno <= (around.end_lineno or around.lineno)
