"""Whether a method asks its object for what nothing in the project gives: an attribute that is never set, or a switch
that is never on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.names.classes import ancestry, find_member, is_module, is_plain
from amplint.infer.names.definitions import Class
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.surely import evaluated, parts
from amplint.infer.torch_model.modules import of_every_module
from amplint.project.mentions import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.source import Source

_DYNAMIC = ("__dict__", "__getattr__", "__getattribute__", "__setstate__", "setattr", "vars")
"""What may give an object attributes that nobody spells."""
Rows = tuple[int, int]
"""The first and the last of some lines."""


class Asked(NamedTuple):
    """An attribute that a method reads of its object on every way through some lines; ``true``: they are run where it
    is true only."""

    name: str
    true: bool
    first: int
    last: int


class Attributes:
    """What the methods of a file ask of their objects. ``named`` gives the files of the project that have a word, None
    where they are too many."""

    def __init__(self, named: Callable[[str], Iterable[Source] | None]) -> None:
        self._named = named
        self._missing: dict[int, list[Rows]] = {}
        self._given: dict[tuple[int, str, bool], bool] = {}

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
            whole = complete and is_plain(cls) and not any(map(_is_dynamic, kin))
            self._missing[key] = self._unused(cls, kin) if whole else []
        return self._missing[key]

    def _unused(self, cls: Class, kin: list[Class]) -> list[Rows]:
        methods = [s for s in cls.node.body if isinstance(s, Function) and s.args.args and not is_static(s)]
        asked = (each for method in methods for each in _asked(method.body, method.args.args[0].arg))
        return [(each.first, each.last) for each in asked if not self._is_given(cls, kin, each)]

    def _is_given(self, cls: Class, kin: list[Class], asked: Asked) -> bool:
        key = (id(cls.node), asked.name, asked.true)
        if key not in self._given:
            inherited = of_every_module(asked.name) or (not asked.true and find_member(cls, asked.name) is not None)
            files = self._named(asked.name) if not inherited else None
            self._given[key] = files is None or _given(asked, cls.name, {base.name for base in kin}, files)
        return self._given[key]


def _is_constructed(cls: Class, kin: list[Class]) -> bool:
    """Whether a class is a module, and itself or a base of the project has a constructor."""
    return is_module(cls) and any("__init__" in base.members for base in kin)


def is_static(method: Function) -> bool:
    """Whether the first argument of a method is no object of the class."""
    return any(last_name(decorator) in ("staticmethod", "classmethod") for decorator in method.decorator_list)


def _is_dynamic(cls: Class) -> bool:
    names = ({getattr(n, "id", ""), getattr(n, "attr", ""), getattr(n, "name", "")} for n in nodes_below(cls.node))
    return any(found.intersection(_DYNAMIC) for found in names)


def _asked(body: list[ast.stmt], own: str) -> Iterator[Asked]:
    """What a block reads of an object, and what of it is true where its lines are run."""
    for part in parts(body):
        if part.holds is not None and isinstance(part.node, ast.expr):
            names = _true(part.node, own, holds=part.holds)
            yield from (Asked(name, True, part.first, part.last) for name in names)
        elif not part.is_caught(AttributeError):
            yield from (Asked(name, False, part.first, part.last) for name in _read(part.node, own))


def _read(node: ast.AST, own: str) -> Iterator[str]:
    """What an expression or statement reads, whatever it comes to."""
    for part in evaluated(node):
        attribute = part if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) else None
        if attribute is not None and isinstance(attribute.value, ast.Name) and attribute.value.id == own:
            yield attribute.attr


def _true(test: ast.expr, own: str, *, holds: bool) -> Iterator[str]:
    """The attributes that are true where a test holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _true(test.operand, own, holds=not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for value in test.values:
            yield from _true(value, own, holds=holds)
    elif holds and isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == own:
        yield test.attr


def _given(asked: Asked, name: str, bases: set[str], files: Iterable[Source]) -> bool:
    """Whether something in some files sets an attribute, of a class or of what derives from it, or spells its name."""
    trees = [file.tree for file in files]
    every = [node for tree in trees for node in nodes_below(tree) if isinstance(node, ast.ClassDef)]
    kin = _family(name, every) | bases
    strange: set[int] = set()
    for cls in every:
        if cls.name in kin and _defines(cls, asked):
            return True
        for method in cls.body if cls.name not in kin else ():
            strange |= set(_own_stores(method)) if isinstance(method, Function) else set()
    return any(_sets(tree, asked, strange) for tree in trees)


def _defines(cls: ast.ClassDef, asked: Asked) -> bool:
    """Whether the body of a class has a function or, unless it is to be true, a variable of that name."""
    for statement in cls.body:
        variables = not asked.true and not isinstance(statement, Function)
        for node in nodes_below(statement):
            if isinstance(node, Function) and node.name == asked.name:
                return True
            if variables and isinstance(node, ast.Name) and node.id == asked.name and isinstance(node.ctx, ast.Store):
                return True
    return False


def _family(name: str, every: list[ast.ClassDef]) -> set[str]:
    """A class, what derives from it, and what that derives from besides."""
    found = {name}
    while derived := {cls.name for cls in every if found.intersection(map(last_name, cls.bases))} - found:
        found |= derived
    while bases := {base for cls in every if cls.name in found for base in map(last_name, cls.bases) if base} - found:
        found |= bases
    return found


def _sets(tree: ast.Module, asked: Asked, strange: set[int]) -> bool:
    off: set[int] = set()
    for node in nodes_below(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Constant | None):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            off |= {id(target) for target in targets if asked.true and not getattr(node.value, "value", None)}
    for node in nodes_below(tree):
        if isinstance(node, ast.Constant) and node.value == asked.name:
            return True
        if not isinstance(node, (ast.Name, ast.Attribute)) or isinstance(node.ctx, ast.Load) or id(node) in off:
            continue
        if isinstance(node, ast.Name):
            found = asked.true and node.id == asked.name
        else:
            found = node.attr == asked.name and id(node) not in strange
        if found:
            return True
    return False


def _own_stores(method: Function) -> Iterator[int]:
    own = method.args.args[0].arg if method.args.args else ""
    for node in nodes_below(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            yield id(node)


def last_name(base: ast.expr) -> str:
    """The last part of a dotted name, without parameters in brackets."""
    if isinstance(base, ast.Subscript):
        return last_name(base.value)
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
