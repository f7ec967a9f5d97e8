"""In what order a file's functions are entered: callers before what they call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeVar

from amplint.infer.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Set

Key = TypeVar("Key")


def callers_first(calls: dict[Key, list[Key]]) -> list[Key]:
    """The keys, each behind those that name it where no cycle forbids that, else in the order in which they came."""
    finished: list[Key] = []
    seen: set[Key] = set()
    for start in reversed(list(calls)):
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(calls[start]))]
        while stack:
            key, rest = stack[-1]
            following = next((called for called in rest if called in calls and called not in seen), None)
            if following is None:
                finished.append(key)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(calls[following])))
    return finished[::-1]


def methods_named(node: ast.FunctionDef | ast.AsyncFunctionDef, among: Set[str]) -> list[str]:
    """Which of these methods a method asks of its own object, in the order of the source."""
    first = node.args.args[0].arg if node.args.args else ""
    asked = [
        child
        for child in nodes_below(node)
        if isinstance(child, ast.Attribute)
        and child.attr in among
        and isinstance(child.value, ast.Name)
        and child.value.id == first
    ]
    return [child.attr for child in sorted(asked, key=lambda child: (child.lineno, child.col_offset))]
