"""Names that say nothing in the place of the author's, and strings emptied."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.reduce.known_names import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.reduce.reduction import Reduction

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REGISTERING = ("register_buffer", "register_parameter", "add_module", "register_module")


def neutralise(reduction: Reduction) -> None:
    """Rename what the file itself defines, and empty its strings, where the finding stays. Raises TimeUpError."""
    names = _neutral(reduction.tree)
    if not _rename(reduction, names):
        for name, new in names.items():
            _rename(reduction, {name: new})
    for node in ast.walk(reduction.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and node.value not in names.values():
            reduction.attempt(node, "value", type(node.value)())


def _neutral(tree: ast.Module) -> dict[str, str]:
    """Every name that the file defines with a neutral one, but for those that torch or Python give a meaning."""
    fixed = {name for node in ast.walk(tree) for name in _fixed(node)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    kinds: dict[str, str] = {}
    for name, kind in _defined(tree):
        of_torch = is_known(name) and (kind in "af" or name in attributes)
        if not (name.startswith("__") and name.endswith("__")) and name not in fixed and not of_torch:
            kinds.setdefault(name, kind)
    taken = fixed | {name for _, _, name in _places(tree)} - kinds.keys()
    neutral: dict[str, str] = {}
    for name, kind in kinds.items():
        number = 1
        while (candidate := f"{kind}{number}") in taken:
            number += 1
        taken.add(candidate)
        neutral[name] = candidate
    return neutral


def _defined(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names with their kind: ``C`` of a class, ``f`` of a function, ``a`` of an attribute, ``x`` of a variable."""
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            yield node.name, "C" if isinstance(node, ast.ClassDef) else "f"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, "a"
        elif isinstance(node, ast.Call) and _called(node) in _REGISTERING and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
                yield name.value, "a"
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls", "ctx"):
            yield node.arg, "x"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, "x"


def _fixed(node: ast.AST) -> Iterator[str]:
    """Names that a node binds in a way that is not followed here, or brings from elsewhere."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
        yield node.name


def _rename(reduction: Reduction, names: dict[str, str]) -> bool:
    """Rename everywhere, or nowhere if the finding does not stay."""
    changed = [(node, field, name) for node, field, name in _places(reduction.tree) if name in names]
    for node, field, name in changed:
        setattr(node, field, names[name])
    stays = False
    try:
        stays = reduction.holds()
    finally:
        if not stays:
            for node, field, name in changed:
                setattr(node, field, name)
    return stays


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str]]:
    """Where a name may stand: node, field, name. As a keyword, only in a call of what the file itself defines."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords if _called(node) in own else ():
                if keyword.arg is not None:
                    yield keyword, "arg", keyword.arg
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and node.value.isidentifier():
                yield node, "value", node.value
        else:
            field = _FIELDS.get(type(node))
            if field is not None:
                yield node, field, getattr(node, field)


_FIELDS: dict[type[ast.AST], str] = {
    **dict.fromkeys(_DEFINITIONS, "name"),
    ast.arg: "arg",
    ast.Name: "id",
    ast.Attribute: "attr",
}


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
