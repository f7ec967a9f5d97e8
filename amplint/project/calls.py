"""The calls of a function, and of the objects of a class, by what mentions it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from amplint.infer.syntax.bodies import children, nodes_below
from amplint.infer.syntax.scripts import is_script
from amplint.project.mentions import ASKING, Definition, Function, definitions, local_names, made_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.project.mentions import Mention
    from amplint.source import Source

_PASSING = ("enumerate", "zip", "reversed", "list", "iter")
"""Builtins that give the items of what they get."""


class Called(NamedTuple):
    """A function of a file, within the definition at its top level that holds it: itself, or its class."""

    file: Source
    holder: Definition
    function: Function


def calls_by(file: Source, mention: Mention, name: str, *, made: bool) -> list[tuple[Called | None, ast.Call]] | None:
    """The calls of a function by what mentions it, or of the objects that it makes of a class; None where one may be
    missing."""
    holder, names = mention.definition, local_names(file.tree, name) | {name}
    if not mention.called:
        return None
    if holder is None and made:
        return _of_program(file.tree, mention.row, names)
    if holder is None:
        outside = (s for s in file.tree.body if not isinstance(s, Definition))
        return [(None, call) for s in outside for call in _named_calls(s, names, name)] or None
    if not made:
        within = mention.method or holder
        caller = Called(file, holder, within) if isinstance(within, Function) else None
        calls = _named_calls(caller.function, names, name) if caller is not None else ()
        return [(caller, call) for call in calls] or None
    if isinstance(holder, Function):
        return _of_objects(Called(file, holder, holder), names, frozenset())
    kept = frozenset(attribute for attribute, of in made_attributes(holder).items() if not names.isdisjoint(of))
    if not kept and isinstance(mention.method, Function):
        return _of_objects(Called(file, holder, mention.method), names, kept)
    if any(_is_asked_of_another(node, kept) for node in nodes_below(file.tree)):
        return None
    found: list[tuple[Called | None, ast.Call]] = []
    for cls in _with_derived(file.tree, holder) if kept else ():
        for function in functions(cls):
            of_kept = _of_objects(Called(file, cls, function), frozenset(), kept)
            if of_kept is None:
                return None
            found += of_kept
    return found or None


def calls_of_own(function: Function, name: str) -> Iterator[ast.Call]:
    """The calls of a method of its own object."""
    own = function.args.args[0].arg if function.args.args else ""
    for node in nodes_below(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == name and getattr(called.value, "id", "") == own:
            assert isinstance(node, ast.Call)
            yield node


def is_of_base(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node calls the constructor that a class derives."""
    called = node.func if isinstance(node, ast.Call) else None
    of = called.value if isinstance(called, ast.Attribute) and called.attr == "__init__" else None
    return isinstance(of, ast.Call) and getattr(of.func, "id", "") == "super"


def functions(holder: Definition) -> Iterator[Function]:
    """A function itself, or the methods of a class."""
    yield from (holder,) if isinstance(holder, Function) else (s for s in holder.body if isinstance(s, Function))


def _is_asked_of_another(node: ast.AST, kept: frozenset[str]) -> bool:
    """Whether an expression calls what such an attribute holds, of another object than a variable is."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in kept and not isinstance(called.value, ast.Name)


def _with_derived(tree: ast.Module, cls: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """A class, and those at the top of its file that derive from it."""
    for other in definitions(tree).values():
        bases = other.bases if isinstance(other, ast.ClassDef) else []
        if isinstance(other, ast.ClassDef) and (other is cls or any(getattr(b, "id", "") == cls.name for b in bases)):
            yield other


def _named_calls(around: ast.AST, names: frozenset[str], name: str) -> Iterator[ast.Call]:
    for node in nodes_below(around):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", None) in names or (isinstance(called, ast.Attribute) and called.attr == name):
                yield node


def _of_objects(
    caller: Called, makers: frozenset[str], kept: frozenset[str]
) -> list[tuple[Called | None, ast.Call]] | None:
    """The calls, in one function, of what it makes with some names, or of what some attributes of its object hold."""
    own = caller.function.args.args[0].arg if caller.function.args.args else ""
    calls = _object_calls(caller.function, own, makers, kept)
    return [(caller, call) for call in calls] if calls is not None else None


def _of_program(tree: ast.Module, row: int, names: frozenset[str]) -> list[tuple[Called | None, ast.Call]] | None:
    """The calls, where a file is the program, of what it makes there with some names: by that alone, or else they may
    be elsewhere."""
    for script in tree.body:
        if is_script(script) and script.lineno <= row <= (script.end_lineno or row) and not _reads_of(tree, script):
            calls = _object_calls(script, "", names, frozenset())
            return [(None, call) for call in calls] if calls is not None else None
    return None


def _object_calls(around: ast.AST, own: str, makers: frozenset[str], kept: frozenset[str]) -> list[ast.Call] | None:
    """The calls, in a function or a block, of what it makes with some names, or of what some attributes of an object
    hold; None where one may be elsewhere."""
    uses = _Uses(around)
    found: list[ast.Call] = []
    for node in nodes_below(around):
        made = isinstance(node, ast.Call) and getattr(node.func, "id", "") in makers
        held = isinstance(node, ast.Attribute) and node.attr in kept and getattr(node.value, "id", "") == own
        if made or (held and isinstance(getattr(node, "ctx", None), ast.Load)):
            calls = uses.calls(node)
            if calls is None:
                return None
            found += calls
    return found


def _reads_of(tree: ast.Module, script: ast.stmt) -> bool:
    """Whether a function or class of a file reads a variable that a block at its top level sets."""
    stored = {n.id for n in nodes_below(script) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for definition in definitions(tree).values():
        names = [node for node in nodes_below(definition) if isinstance(node, ast.Name)]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in nodes_below(definition) if isinstance(node, ast.arg)}
        if any(node.id in stored - own for node in names):
            return True
    return False


class _Uses:
    """What a function, or a block, does with its objects."""

    def __init__(self, around: ast.AST) -> None:
        self._nodes = nodes_below(around)
        self._parents = {id(child): node for node in self._nodes for child in children(node)}

    def calls(self, node: ast.AST) -> list[ast.Call] | None:
        """The calls of what an expression gives, or of its items; None where it may be called elsewhere."""
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Call):
            if parent.func is node:
                return [parent]
            name = getattr(parent.func, "id", "")
            return self.calls(parent) if name in _PASSING else [] if name in ASKING else None
        if isinstance(parent, ast.Attribute):
            return self.calls(parent) if parent.attr in ("forward", "__call__") else []
        if isinstance(parent, (ast.Subscript, ast.IfExp)) and node is not getattr(parent, "slice", None):
            return self.calls(parent) if node is not getattr(parent, "test", None) else []
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            return self._of_variables(parent.target)
        if isinstance(parent, ast.Assign) and parent.value is node:
            return self._of_variables(*parent.targets)
        return [] if isinstance(parent, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If)) else None

    def _of_variables(self, *targets: ast.expr) -> list[ast.Call] | None:
        parts = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.expr)]
        if not all(isinstance(part, (ast.Name, ast.Tuple, ast.List)) for part in parts):
            return None
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        loads = [n for n in self._nodes if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]
        called = {load.id for load in loads if getattr(self._parents.get(id(load)), "func", None) is load}
        found: list[ast.Call] = []
        for load in loads if called else ():
            calls = self.calls(load) if load.id in called else []
            if calls is None:
                return None
            found += calls
        return found or None
