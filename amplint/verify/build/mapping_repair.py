"""Inputs that a forward takes apart by text keys: ``batch["image"]``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from amplint.verify.build.signatures import source_tree
from amplint.verify.build.spec import Items, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.verify.build.frames import Place
    from amplint.verify.build.searches import InputSearch
    from amplint.verify.build.spec import Repair

COST = 0.4


DICTS = ("keys", "items", "values", "get")
"""What only dicts are asked for."""


def mappings(search: InputSearch, plan: Plan, trail: list[Place], error: Exception) -> Iterator[Repair]:
    """A dict in the place of each input that a failing statement asks for a text key which it does not have, or for all
    its keys.

    It has all the keys by which the forward, or the failing method, uses an input of that name. What a dict lacks under
    another name than the forward's is added too.
    """
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        for name, given in plan.items():
            if isinstance(given, Items) and given.kind is dict and error.args[0] not in given.names:
                item = search.choices(plan, error.args[0])[0]
                yield COST + 0.1, {**plan, name: Items(dict, (*given.items, item), (*given.names, error.args[0]))}
    for place in trail[:3]:
        asked = keys_by_name([place.statement], place.evaluate) if place.statement is not None else {}
        for name in _as_dict(place.statement) & plan.keys():
            other = plan[name]
            if not isinstance(other, Items) or other.kind is not dict:
                yield COST, {**plan, name: Items(dict, ())}
        for name in asked.keys() & (plan.keys() | search.parameters.keys()):
            trees = (source_tree(type(search.module).forward), source_tree(place.frame.f_code))
            used = [keys_by_name([tree], place.evaluate).get(name, []) for tree in trees if tree is not None]
            old = plan.get(name)
            have = dict(zip(old.names, old.items, strict=True)) if isinstance(old, Items) and old.names else {}
            wanted = [*have, *asked[name], *(key for keys in used for key in keys)]
            made = {key: have.get(key) or search.choices(plan, key)[0] for key in dict.fromkeys(wanted)}
            if made.keys() != have.keys():
                yield COST, {**plan, name: Items(dict, tuple(made.values()), tuple(made))}


def keys_by_name(trees: Iterable[ast.AST], evaluate: Callable[[ast.expr], Any]) -> dict[str, list[str]]:
    """The texts by which each plain name is indexed to be read: ``batch["image"]``, ``batch[KEYS.IMAGE]``."""
    found: dict[str, list[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            key = evaluate(node.slice)
            if isinstance(key, str):
                found.setdefault(node.value.id, []).append(key)
    return found


def _as_dict(tree: ast.AST | None) -> set[str]:
    """Plain names of which a method is called that only dicts have."""
    return {
        node.value.id
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in DICTS
    }
