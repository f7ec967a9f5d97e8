"""Inputs that are objects with tensors in attributes: ``batch.payload``."""

from __future__ import annotations

import ast
import re
import sys
import types
from typing import TYPE_CHECKING, Any

from torch import nn

from amplint.verify.build.mapping_repair import DICTS
from amplint.verify.build.parts import attributes_of
from amplint.verify.build.signatures import VARIADIC, Parameter, constructor, source_tree
from amplint.verify.build.spec import Items, Plan, tensors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.frames import Place
    from amplint.verify.build.searches import InputSearch
    from amplint.verify.build.spec import Repair

MOST = 3
COST = 0.5
_LACKS = re.compile(r"'(?:Tensor|tuple|list|int|dict|NoneType)' object has no attribute '(\w+)'")


def records(search: InputSearch, plan: Plan, text: str, trail: list[Place]) -> Iterator[Repair]:
    """An object in the place of each input that a failing statement asks for an attribute that it does not have.

    First of the classes of the library that have the attribute, each made of tensors, then a plain one with all
    attributes by which the forward reads that input.
    """
    lacks = _LACKS.search(text)
    if lacks is None or lacks[1] in DICTS:
        return
    for place in trail[:3]:
        asked = _read_of(place.statement)
        for name in [n for n, read in asked.items() if lacks[1] in read and (n in plan or n in search.parameters)]:
            kinds = _having(type(search.module).__module__, lacks[1])
            for index, kind in enumerate(kinds[:MOST]):
                wanted = [n for n, p in constructor(kind).items() if _needed(p)]
                yield COST + 0.1 * index, {**plan, name: _record(search, plan, kind, wanted)}
            used = _read_of(source_tree(type(search.module).forward)).get(name, [])
            names = [n for n in dict.fromkeys([*asked[name], *used]) if not hasattr(nn.Module, n)]
            yield COST + 0.4, {**plan, name: _record(search, plan, types.SimpleNamespace, names)}


def _record(search: InputSearch, plan: Plan, kind: Any, names: list[str]) -> Items:
    main = next(iter(tensors_of(plan).values()), None)
    specs = [search.choices(plan, name)[0] for name in names]
    items = [main if isinstance(spec, Items) and main is not None else spec for spec in specs]
    return Items(kind, tuple(items), tuple(names))


def _needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in (*VARIADIC, Parameter.POSITIONAL_ONLY)


def _read_of(tree: ast.AST | None) -> dict[str, list[str]]:
    """The attributes by which each plain name is read."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.value.id, []).append(node.attr)
    return found


def _having(module: str, attribute: str) -> list[type]:
    """Classes of the target's package, but for modules, that have the attribute and are made of named arguments."""
    package = module.partition(".")[0]
    found: dict[type, None] = {}
    for name, space in sorted(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(space, types.ModuleType):
            for thing in list(vars(space).values()):
                own = isinstance(thing, type) and thing.__module__ == name and not issubclass(thing, nn.Module)
                if own and attribute in attributes_of(thing) and any(map(_needed, constructor(thing).values())):
                    found[thing] = None
    return sorted(found, key=lambda kind: sum(map(_needed, constructor(kind).values())))
