"""Whether a method asks its object for what nothing in the project gives: an attribute that is never set, or that is
only ever set to constants with which a test comes out otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.names.classes import ancestry, find_member, is_dataclass, is_module, is_plain
from amplint.infer.names.definitions import Class
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.surely import evaluated, parts, transparent
from amplint.infer.torch_model.modules import of_every_module
from amplint.project.demands import Demand, constants, demanded
from amplint.project.mentions import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.source import Source

_DYNAMIC = ("__dict__", "__getattr__", "__getattribute__", "__setstate__", "setattr", "vars")
"""What may give an object attributes that nobody spells."""
Rows = tuple[int, int]
"""The first and the last of some lines."""


class Asked(NamedTuple):
    """An attribute that a method reads of its object on every way through some lines, and what a test demands of it
    for them to be run."""

    name: str
    demand: Demand | None
    first: int
    last: int


class Attributes:
    """What the methods of a file ask of their objects. ``named`` gives the files of the project that have a word, None
    where they are too many."""

    def __init__(self, named: Callable[[str], Iterable[Source] | None]) -> None:
        self._named = named
        self._missing: dict[int, list[Rows]] = {}
        self._given: dict[tuple[int, str, Demand | None], bool] = {}

    def missing(self, cls: Class) -> list[Rows]:
        """The lines of a class that nobody uses: what runs them asks, before or after, for an attribute that nothing
        gives.

        What has no ``forward`` may be mixed into a class that has one, and gets attributes there, unless it is a module
        with a constructor.
        """
        key = id(cls.node)
        if key not in self._missing:
            kin = [base for base in ancestry(cls) if isinstance(base, Class)]
            complete = find_member(cls, "forward") is not None or _is_constructed(cls, kin)
            given = any(_is_dynamic(base) or is_dataclass(base) for base in kin)
            whole = complete and is_plain(cls) and not given
            self._missing[key] = self._unused(cls, kin) if whole else []
        return self._missing[key]

    def _unused(self, cls: Class, kin: list[Class]) -> list[Rows]:
        contexts = transparent(cls.namespace.tree)
        methods = [s for s in cls.node.body if isinstance(s, Function) and s.args.args and not is_static(s)]
        asked = (each for method in methods for each in _asked(method, contexts))
        return [(each.first, each.last) for each in asked if not self._is_given(cls, kin, each)]

    def _is_given(self, cls: Class, kin: list[Class], asked: Asked) -> bool:
        key = (id(cls.node), asked.name, asked.demand)
        if key not in self._given:
            member = find_member(cls, asked.name) if asked.demand is None else None
            inherited = of_every_module(asked.name) or member is not None
            self._given[key] = inherited or self._is_set(cls, {base.name for base in kin}, asked)
        return self._given[key]

    def _is_set(self, cls: Class, bases: set[str], asked: Asked) -> bool:
        """What the file itself gives, no other takes back."""
        if _given(asked, cls.name, bases, [cls.namespace.tree]):
            return True
        files = self._named(asked.name)
        return files is None or _given(asked, cls.name, bases, [file.tree for file in files])


def _is_constructed(cls: Class, kin: list[Class]) -> bool:
    """Whether a class is a module, and itself or a base of the project has a constructor."""
    return is_module(cls) and any("__init__" in base.members for base in kin)


def is_static(method: Function) -> bool:
    """Whether the first argument of a method is no object of the class."""
    return any(last_name(decorator) in ("staticmethod", "classmethod") for decorator in method.decorator_list)


def _is_dynamic(cls: Class) -> bool:
    names = ({getattr(n, "id", ""), getattr(n, "attr", ""), getattr(n, "name", "")} for n in nodes_below(cls.node))
    return any(found.intersection(_DYNAMIC) for found in names)


def _asked(method: Function, contexts: frozenset[int]) -> Iterator[Asked]:
    """What a method reads of its object, and what its tests demand of that."""
    own = method.args.args[0].arg

    def attribute(node: ast.expr) -> str | None:
        of_object = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own
        return node.attr if isinstance(node, ast.Attribute) and of_object else None

    for part in parts(method.body, contexts):
        if part.holds is None and not part.is_caught(AttributeError):
            yield from (Asked(name, None, part.first, part.last) for name in _read(part.node, own))
    yield from (Asked(*each[:4]) for each in demanded(method.body, attribute) if each.columns is None)


def _read(node: ast.AST, own: str) -> Iterator[str]:
    """What an expression or statement reads, whatever it comes to."""
    for part in evaluated(node):
        attribute = part if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) else None
        if attribute is not None and isinstance(attribute.value, ast.Name) and attribute.value.id == own:
            yield attribute.attr


def _given(asked: Asked, name: str, bases: set[str], trees: list[ast.Module]) -> bool:
    """Whether something in some files sets an attribute, of a class or of what derives from it, or spells its name."""
    every = [cls for tree in trees for cls in nodes_of_kind(tree, ast.ClassDef)]
    kin = _family(name, every) | bases
    if any(cls.name in kin and _defines(cls, asked) for cls in every):
        return True
    return any(_sets(tree, asked, kin) for tree in trees)


def _defines(cls: ast.ClassDef, asked: Asked) -> bool:
    """Whether the body of a class has a function of that name, or a variable that may be what is demanded."""
    off = _off(cls, asked.demand)
    for statement in cls.body:
        for node in nodes_below(statement):
            if isinstance(node, Function) and node.name == asked.name:
                return True
            variable = isinstance(node, ast.Name) and node.id == asked.name and isinstance(node.ctx, ast.Store)
            if variable and id(node) not in off and not isinstance(statement, Function):
                return True
    return False


def _off(tree: ast.AST, demand: Demand | None) -> set[int]:
    """What is given a constant that is not what is demanded, or only annotated, by ``id``."""
    found: set[int] = set()
    for node in nodes_of_kind(tree, ast.Assign, ast.AnnAssign):
        value = constants(node.value) if node.value is not None else None
        if node.value is None or (demand is not None and value is not None and not demand.allows(value[0])):
            found |= {id(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])}
    return found


def _family(name: str, every: list[ast.ClassDef]) -> set[str]:
    """A class, what derives from it, and what that derives from besides."""
    found = {name}
    while derived := {cls.name for cls in every if found.intersection(map(last_name, cls.bases))} - found:
        found |= derived
    while bases := {base for cls in every if cls.name in found for base in map(last_name, cls.bases) if base} - found:
        found |= bases
    return found


def _sets(tree: ast.Module, asked: Asked, kin: set[str]) -> bool:
    """Whether a file has a name as a string, or sets an attribute of that name: not where a method of a class that has
    nothing to do with these sets it of its own object."""
    spelled = _spelled(tree)
    if asked.name in spelled.texts:
        return True
    stored = set(spelled.stored.get(asked.name, ()))
    if stored:
        stored -= {node for node, cls in _own_stores(tree).get(asked.name, ()) if cls not in kin}
    return bool(stored) and not stored <= _off(tree, asked.demand)


class _Spelled(NamedTuple):
    """The strings of a file, and the attributes that it sets, by name: the ``id`` of each."""

    texts: frozenset[str]
    stored: dict[str, list[int]]


@once_for_each_node
def _spelled(tree: ast.Module) -> _Spelled:
    texts = frozenset(node.value for node in nodes_of_kind(tree, ast.Constant) if isinstance(node.value, str))
    stored: dict[str, list[int]] = {}
    for node in nodes_of_kind(tree, ast.Attribute):
        if not isinstance(node.ctx, ast.Load):
            stored.setdefault(node.attr, []).append(id(node))
    return _Spelled(texts, stored)


@once_for_each_node
def _own_stores(tree: ast.Module) -> dict[str, list[tuple[int, str]]]:
    """The attributes that methods set of their own object, by name: the ``id`` of each, and the name of the class."""
    found: dict[str, list[tuple[int, str]]] = {}
    for cls in nodes_of_kind(tree, ast.ClassDef):
        for method in cls.body:
            own = method.args.args[0].arg if isinstance(method, Function) and method.args.args else ""
            for node in nodes_of_kind(method, ast.Attribute) if own else ():
                if not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and node.value.id == own:
                    found.setdefault(node.attr, []).append((id(node), cls.name))
    return found


def last_name(base: ast.expr) -> str:
    """The last part of a dotted name, without parameters in brackets."""
    if isinstance(base, ast.Subscript):
        return last_name(base.value)
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
