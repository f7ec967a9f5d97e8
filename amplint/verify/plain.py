"""Frozen data classes that travel between processes as JSON."""

from __future__ import annotations

import functools
import types
from dataclasses import asdict, fields, is_dataclass
from itertools import repeat
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from amplint.frozen import dataclass

_P = TypeVar("_P", bound="Plain")


@dataclass(frozen=True)
class Plain:
    """Base of data classes whose fields are numbers, texts, other such classes, and tuples and dicts of all these."""

    def to_json(self) -> dict[str, Any]:
        """Fields by name; ``json`` makes lists of tuples."""
        return asdict(self)

    @classmethod
    def from_json(cls: type[_P], data: Any) -> _P:
        """The inverse of :meth:`to_json`, through ``json`` or not; a field that is missing keeps its default."""
        made: _P = _read(cls, data)
        return made


_hints = functools.cache(get_type_hints)


def _read(kind: Any, data: Any) -> Any:
    """``data`` as a field of that annotation holds it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if data is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{f.name: _read(hints[f.name], data[f.name]) for f in fields(kind) if f.name in data})
    if origin in (Union, types.UnionType):
        return _read(next(part for part in arguments if part is not types.NoneType), data)
    if origin is tuple:
        kinds = repeat(arguments[0]) if arguments[-1] is ... else arguments
        return tuple(map(_read, kinds, data))
    if origin is dict:
        return {key: _read(arguments[1], value) for key, value in data.items()}
    return data
