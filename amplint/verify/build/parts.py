"""Modules of the library itself for a constructor's parameter: of the class asked for, or that have what is used."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from torch import nn

from amplint.verify.build.effort import Deadline
from amplint.verify.build.signatures import parameters
from amplint.verify.build.spec import Make, Spec
from amplint.verify.targets import self_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS = 12.0
"""How long arguments for one such module are searched for."""
MOST = 4
Finder = Callable[[type[nn.Module], Deadline], Callable[[], Any]]
"""Finds, until a point in time, what constructs a class, or what raises TypeError where there is nothing."""

_making: list[type] = []
_makers: dict[type, Callable[[], Any]] = {}
_finders: list[Finder] = []


def part(kind: type[nn.Module]) -> Make:
    """A module of that class, made with arguments that are searched for once."""
    return Make(f"{kind.__module__}.{kind.__qualname__}()", functools.partial(_made, kind))


def prepare(specs: Iterable[Spec]) -> None:
    """Search for the arguments of the parts among ``specs``, before limits hold for what they are made for."""
    for spec in specs:
        if isinstance(spec, Make) and isinstance(spec.call, functools.partial) and spec.call.func is _made:
            (kind,) = spec.call.args
            if kind not in _making and kind not in _makers:
                _makers[kind] = _maker(kind)


def _made(kind: type[nn.Module]) -> nn.Module:
    if kind in _making:
        raise TypeError(f"{kind.__name__} needs another {kind.__name__}")
    if kind not in _makers:
        _makers[kind] = _maker(kind)
    made: nn.Module = _makers[kind]()
    return made


def _maker(kind: type[nn.Module]) -> Callable[[], Any]:
    """What constructs ``kind``, or raises TypeError where nothing was found."""
    (find,) = _finders
    _making.append(kind)
    try:
        return find(kind, Deadline.after(SECONDS))
    finally:
        _making.pop()


def finds_arguments(find: Finder) -> Finder:
    """The decorated function is how arguments of parts are found: its search asks for parts in turn."""
    _finders[:] = [find]
    return find


def having(target: type, name: str, attribute: str) -> list[Make]:
    """Modules of the package of ``target`` that set ``attribute`` or have a method of that name.

    Those of the target's file come first, then those whose class is called most like the parameter ``name``.
    """
    return _parts(target, name, lambda kind: attribute in attributes_of(kind))


def taking(target: type, name: str, keyword: str) -> list[Make]:
    """Modules of the package of ``target`` whose forward takes ``keyword``, in the same order."""
    return _parts(target, name, lambda kind: keyword in parameters(kind.forward))


def _parts(target: type, name: str, wanted: Any) -> list[Make]:
    found = [kind for kind in _modules(target.__module__.partition(".")[0]) if kind is not target and wanted(kind)]
    found = [kind for kind in found if not issubclass(kind, target)]

    def unlike(kind: type) -> tuple[bool, float]:
        ratio = SequenceMatcher(None, kind.__name__.lower(), name.replace("_", "")).ratio()
        return (kind.__module__ != target.__module__, -ratio)

    return [part(kind) for kind in sorted(found, key=unlike)[:MOST]]


def _modules(package: str) -> list[type[nn.Module]]:
    """The module classes that the loaded files of a package define."""
    found: dict[type[nn.Module], None] = {}
    for name, space in sorted(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(space, types.ModuleType):
            for thing in list(vars(space).values()):
                if isinstance(thing, type) and issubclass(thing, nn.Module) and thing.__module__ == name:
                    found[thing] = None
    return list(found)


@functools.lru_cache(maxsize=2048)
def attributes_of(kind: type) -> frozenset[str]:
    """What the classes of ``kind`` below torch's own set on ``self`` or define."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base is object or base.__module__.partition(".")[0] == "torch":
            break
        names |= {name for name in vars(base) if not name.startswith("__")}
        names |= _set_in(base.__module__).get(base.__qualname__, frozenset())
    return frozenset(names)


@functools.lru_cache(maxsize=512)
def _set_in(module: str) -> dict[str, frozenset[str]]:
    """What each class of a module's file sets on ``self``, by qualified name."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, frozenset[str]] = {}

    def note(body: list[ast.stmt], around: str) -> None:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                found[around + statement.name] = frozenset(_set_on_self(statement))
                note(statement.body, f"{around}{statement.name}.")

    note(tree.body, "")
    return found


def _set_on_self(node: ast.ClassDef) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and self_attribute(part):
            yield part.attr
