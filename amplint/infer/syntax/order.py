"""In what order a file's functions are entered: callers before what they call."""

from __future__ import annotations

from typing import TypeVar

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
