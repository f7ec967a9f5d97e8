"""Data files as trees that know where each value is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place: row and column from 1, the column in characters.

    ``value`` is a str, int, float, bool or None, a tuple of nodes, a Mapping, or UNKNOWN where the file leaves it to
    something else (a tag, a substitution).
    """

    value: object
    row: int
    column: int

    def walk(self) -> Iterator[Node]:
        """This node and all below it, each once however many aliases of it there are."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node.value, Mapping):
                waiting.extend(value for _, _, value in reversed(node.value.items))
            elif isinstance(node.value, tuple):
                waiting.extend(reversed(node.value))

    def find(self, *path: str) -> Node | None:
        """The value at keys one below the other, or None."""
        node: Node | None = self
        for key in path:
            node = node.value.get(key) if node is not None and isinstance(node.value, Mapping) else None
        return node


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """Keys in order, each with the node of the key itself (its place) and the node of its value; the last wins."""

    items: tuple[tuple[str, Node, Node], ...]

    def get(self, key: str) -> Node | None:
        return next((value for name, _, value in reversed(self.items) if name == key), None)

    def keys(self) -> set[str]:
        return {name for name, _, _ in self.items}


class Unknown:
    """What cannot be told from the file."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class DocumentError(Exception):
    """The file is not of its format; the message says why and where."""
