"""Configurations within configurations: ``cfg.ENCODER.NAME``, ``cfg["stage"]["widths"]``, with what each field holds.

A stand-in gives a number for any field. Where a statement takes such a number apart, or asks it for an attribute, the
field becomes a configuration too; where it is iterated, a list; where it is looked up, a word that can be found.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amplint.verify.build import names
from amplint.verify.build.configs import AnyConfig
from amplint.verify.build.frames import broken
from amplint.verify.build.spec import Make, Plan, Repair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.frames import Place
    from amplint.verify.build.searches import ArgumentSearch

Fields = tuple[tuple[tuple[str, ...], Any], ...]
"""What fields hold, by their path: :data:`INNER`, or a plain value."""

INNER = "a configuration"
_TAKEN_APART = re.compile(
    r"'(?:int|float|str|list)' object (?:has no attribute|is not subscriptable|is not a mapping)|"
    r"after \*\* must be a mapping"
)
_TEXT = re.compile(
    r"'int' object has no attribute '(lower|upper|startswith|endswith|split|replace|strip)'|[Uu]nknown|invalid"
)
_ITERATED = re.compile(
    r"'(?:int|float)' object is not iterable|of type 'int' has no len|cannot unpack non-iterable int"
)


def fields(search: ArgumentSearch, plan: Plan, text: str, trail: list[Place]) -> Iterator[Repair]:
    """Plans whose stand-in has a configuration or another value in the fields that failing statements read."""
    stand_ins = {name: spec for name, spec in plan.items() if isinstance(spec, Make) and _is_stand_in(spec)}
    offered = list(_offered(trail)) if stand_ins else []
    for holder, key in _read(trail) if stand_ins else ():
        for name, spec in stand_ins.items():
            for extra, value in _values(key, holder.get(key), text, offered):
                yield extra, {**plan, name: changed(spec, (*holder.path, key), value)}


def _read(trail: list[Place]) -> Iterator[tuple[AnyConfig, str]]:
    """The stand-ins that failing statements read, and the fields."""
    for place in trail[:5]:
        for node in ast.walk(place.statement) if place.statement is not None else ():
            key = _key(node)
            holder = place.evaluate(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else None
            if key is not None and isinstance(holder, AnyConfig) and not isinstance(holder.get(key), AnyConfig):
                yield holder, key


def _found(value: Any, offered: list[tuple[Any, Any]]) -> list[Any]:
    """What would have been found in the place of ``value``."""
    return list(dict.fromkeys(one for wanted, one in offered if type(wanted) is type(value) and wanted == value))


def _is_stand_in(spec: Make) -> bool:
    return spec.label.startswith("AnyConfig(")


def _offered(trail: list[Place]) -> Iterator[tuple[Any, Any]]:
    """A value that was looked up in vain, and one that would have been found."""
    for place in trail[:3]:
        for comparison in broken(place):
            among = comparison.right_value
            if comparison.op == "In" and isinstance(among, (list, tuple, Mapping)):
                yield from ((comparison.left_value, one) for one in list(among)[:6])
        for node in ast.walk(place.statement) if place.statement is not None else ():
            if isinstance(node, ast.Subscript) and isinstance(table := place.evaluate(node.value), Mapping):
                yield from ((place.evaluate(node.slice), one) for one in list(table)[:6])
    if trail:  # the method of a registry that found nothing
        local = trail[0].frame.f_locals
        held = [*local.values(), *getattr(local.get("self"), "__dict__", {}).values()]
        tables = [one for one in held if type(one) is dict and one and all(isinstance(key, str) for key in one)]
        asked = [one for one in local.values() if type(one) in (int, str)]
        yield from ((wanted, key) for table in tables for wanted in asked for key in list(table)[:6])


def changed(spec: Make, path: tuple[str, ...], value: Any) -> Make:
    """The same stand-in with ``value`` in the field at ``path``."""
    known: dict[tuple[str, ...], Any] = dict(spec.call.args[0]) if isinstance(spec.call, functools.partial) else {}
    held: Fields = tuple({**known, path: value}.items())
    told = ", ".join(f"{'.'.join(where)}={what!r}" for where, what in sorted(held, key=lambda pair: pair[0]))
    return Make(f"AnyConfig({told})", functools.partial(_made, held))


def _made(held: Fields) -> AnyConfig:
    whole = AnyConfig()
    for path, value in sorted(held, key=lambda pair: len(pair[0])):
        inner = whole
        for index, key in enumerate(path[:-1]):
            if not isinstance(inner.get(key), AnyConfig):
                inner[key] = AnyConfig(path=path[: index + 1])
            inner = inner[key]
        inner[path[-1]] = AnyConfig(path=path) if value == INNER else value
    return whole


def _values(key: str, value: Any, text: str, offered: list[tuple[Any, Any]]) -> Iterator[tuple[float, Any]]:
    if _TAKEN_APART.search(text):
        yield 0.3, INNER
    if _ITERATED.search(text):
        for index, count in enumerate((4, 2, 1, 3)):
            yield 0.5 + 0.1 * index, [names.FEATURES] * count
    for index, one in enumerate(_found(value, offered)):
        yield 0.4 + 0.1 * index, one
    if _TEXT.search(text):
        for index, word in enumerate(names.words_for(key)):
            yield 0.6 + 0.1 * index, word


def _key(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return None
