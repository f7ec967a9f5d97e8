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
    regions = ((call, _enabled(call, legacy)) for call, legacy in _regions(tree))
    given = [(call, switch) for call, switch in regions if isinstance(switch, ast.Name | ast.Attribute)]
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


def is_switched_off(tree: ast.Module, row: int, device: str) -> bool:
    """Whether the innermost region around a line switches autocast off for a device."""
    regions = {id(call): _enabled(call, legacy) for call, legacy in _regions(tree)}
    around = [
        (node.lineno, regions[id(item.context_expr)])
        for node in (nodes_below(tree) if regions else ())
        if isinstance(node, ast.With | ast.AsyncWith) and node.body[0].lineno <= row <= (node.end_lineno or row)
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and id(item.context_expr) in regions
        if _is_of(item.context_expr, device)
    ]
    innermost = max(around, key=lambda region: region[0], default=(0, None))[1]
    return isinstance(innermost, ast.Constant) and innermost.value is False


def _is_of(call: ast.Call, device: str) -> bool:
    """Whether a region is one of a device, by what is written: the deprecated classes have it in their names."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]
    written = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return not written or written[0].partition(":")[0] == device


def _regions(tree: ast.Module) -> Iterator[tuple[ast.Call, bool]]:
    """The calls of autocast classes, each with whether it is one of the deprecated classes."""
    for reference in references(tree):
        if reference.call is not None and reference.name.startswith("torch.") and reference.name.endswith(".autocast"):
            yield reference.call, reference.name.startswith(_LEGACY)


def _enabled(call: ast.Call, legacy: bool) -> ast.expr | None:
    position = 0 if legacy else 2
    given = call.args[position] if len(call.args) > position else None
    return next((keyword.value for keyword in call.keywords if keyword.arg == "enabled"), given)


def _encloses(around: _Function | ast.ClassDef, call: ast.Call) -> bool:
    return around.lineno <= call.lineno <= (around.end_lineno or around.lineno)
