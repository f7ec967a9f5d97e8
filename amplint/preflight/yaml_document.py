"""YAML with places, by PyYAML's safe constructors: YAML 1.1, as the training frameworks themselves read it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from amplint.preflight.document import UNKNOWN, DocumentError, Mapping, Node

yaml: Any = import_module("yaml")

_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}
_MERGE = "tag:yaml.org,2002:merge"


def read_yaml(text: str) -> list[Node]:
    """The trees of the documents of a YAML file. Raises DocumentError."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            documents = []
            while loader.check_node():
                documents.append(_Reader(loader).node(loader.get_node()))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise DocumentError(f"not valid YAML: {getattr(error, 'problem', None) or error}{where}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    return documents


class _Reader:
    """Turns PyYAML's nodes into ours, each once, so that an alias costs nothing."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._done: dict[int, Node] = {}

    def node(self, found: Any) -> Node:
        known = self._done.get(id(found))
        if known is not None:
            return known
        row, column = found.start_mark.line + 1, found.start_mark.column + 1
        self._done[id(found)] = Node(UNKNOWN, row, column)
        self._done[id(found)] = result = Node(self._value(found), row, column)
        return result

    def _value(self, found: Any) -> object:
        if isinstance(found, yaml.ScalarNode):
            return self._scalar(found)
        if found.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            return UNKNOWN
        if isinstance(found, yaml.SequenceNode):
            return tuple(self.node(item) for item in found.value)
        items: list[tuple[str, Node, Node]] = []
        for key, value in found.value:
            if key.tag == _MERGE:
                merged = self.node(value).value
                if isinstance(merged, Mapping):
                    items[:0] = merged.items
            elif isinstance(key, yaml.ScalarNode):
                items.append((key.value, self.node(key), self.node(value)))
        return Mapping(tuple(items))

    def _scalar(self, found: Any) -> object:
        if found.tag not in _SCALARS:
            return UNKNOWN
        try:
            value = self._loader.construct_object(found)
        except (yaml.YAMLError, ValueError):
            return UNKNOWN
        return UNKNOWN if isinstance(value, str) and ("${" in value or "{{" in value) else value
