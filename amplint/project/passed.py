"""Whether the calls that a project has of a function leave out what a line of it needs: an optional argument.

So it is of a constructor, where a method tests the attribute that holds the argument.

The calls are followed from where the project makes an object of the class, or mentions the function, to where it calls
them; what hands on an optional parameter of its own leaves it out where its own calls do. Where one is not understood,
none is seen, or a package exports what is called, anything may be passed.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.project.demands import constants, demanded
from amplint.project.mentions import Function, definitions, local_names, made_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.project.mentions import Definition, Mention
    from amplint.project.ways import Ways
    from amplint.source import Source

MAX_FUNCTIONS = 12
"""Functions that hand on a parameter, of which it is asked who calls them."""
_PASSING = ("enumerate", "zip", "reversed", "list", "iter")
"""Builtins that give the items of what they get."""
_ASKING = ("len", "isinstance", "id", "type", "hasattr", "print")
"""Builtins that call nothing of what they get."""


class Called(NamedTuple):
    """A function of a file, within the definition at its top level that holds it: itself, or its class."""

    file: Source
    holder: Definition
    function: Function


class Passed:
    """What a project passes to the functions of one file."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways

    def lack(self, file: Source, row: int) -> bool:
        """Whether a line is run only where a function, or the constructor of its object, gets an argument that all its
        calls leave out; one is seen."""
        for holder in definitions(file.tree).values():
            if not holder.lineno <= row <= (holder.end_lineno or row):
                continue
            for function in _functions(holder):
                called = Called(file, holder, function)
                needed = [name for name, lines in _optional(function).items() if _is_within(row, lines)]
                if any(self._is_left_out(called, name, set()) for name in needed):
                    return True
            maker = next((f for f in _functions(holder) if f.name == "__init__"), None)
            if maker is not None and any(
                self._is_left_out(Called(file, holder, maker), name, set()) and not self._ways.is_given(attribute)
                for attribute, name in _chosen(holder, maker, row)
            ):
                return True
        return False

    def _is_left_out(self, called: Called, parameter: str, seen: set[tuple[int, str]]) -> bool:
        key = (id(called.function), parameter)
        if key in seen:
            return True
        seen.add(key)
        holder = called.holder
        if len(seen) > MAX_FUNCTIONS or holder.decorator_list or self._ways.is_exported(called.file, holder.name):
            return False
        calls = self._calls(called)
        if not calls:
            return False
        return all(self._leaves_out(caller, call, called, parameter, seen) for caller, call in calls)

    def _leaves_out(
        self, caller: Called, call: ast.Call, called: Called, parameter: str, seen: set[tuple[int, str]]
    ) -> bool:
        """Whether a call passes nothing for a parameter but its default."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return False
        names = _positional(called)
        given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        if parameter not in given:
            return True
        passed, default = given[parameter], _defaults(called.function)[parameter]
        if constants(passed) == default:
            return True
        own = passed.id if isinstance(passed, ast.Name) else ""
        kept = own in _optional(caller.function) and _defaults(caller.function)[own] == default
        return kept and self._is_left_out(caller, own, seen)

    def _calls(self, called: Called) -> list[tuple[Called, ast.Call]] | None:
        """The calls of a function in the project; None where one may be missing."""
        whole = isinstance(called.holder, ast.ClassDef)
        if whole and called.function.name not in ("forward", "__init__"):
            return None
        made = whole and called.function.name == "forward"
        found = []
        for file, mention in self._ways.users(called.file, called.holder.name) or ():
            if mention.definition is called.holder and file is called.file:
                continue
            calls = _calls_by(file, mention, called.holder.name, made=made)
            if calls is None:
                return None
            found += calls
        return found


def _functions(holder: Definition) -> Iterator[Function]:
    yield from (holder,) if isinstance(holder, Function) else (s for s in holder.body if isinstance(s, Function))


@once_for_each_node
def _optional(function: ast.AST) -> dict[str, list[tuple[int, int]]]:
    """The optional parameters of a function that keep their defaults unless they are passed, each with the lines that
    are run only where it is something else."""
    assert isinstance(function, Function)
    defaults = _defaults(function)
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in defaults}

    def parameter(node: ast.expr) -> str | None:
        return node.id if isinstance(node, ast.Name) and node.id in defaults else None

    for name, demand, first, last in demanded(function.body, parameter) if defaults else ():
        if not demand.allows(defaults[name][0]):
            found[name].append((first, last))
    names = (
        node for node in nodes_below(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    for stored in names if defaults else ():
        if not _is_within(stored.lineno, found.get(stored.id, [])):
            found.pop(stored.id, None)
    return found


def _chosen(cls: Definition, maker: Function, row: int) -> Iterator[tuple[str, str]]:
    """The optional parameters of a constructor that a line needs to be something else than their defaults, behind the
    attributes that hold them and that methods test."""
    kept = _kept(cls, maker)
    defaults = _defaults(maker)
    for method in _functions(cls) if kept else ():
        if method is maker or not method.lineno <= row <= (method.end_lineno or row) or not method.args.args:
            continue
        own = method.args.args[0].arg

        def option(node: ast.expr, own: str = own) -> str | None:
            held = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == own
            return node.attr if held and isinstance(node, ast.Attribute) and node.attr in kept else None

        for attribute, demand, first, last in demanded(method.body, option):
            if first <= row <= last and not demand.allows(defaults[kept[attribute]][0]):
                yield attribute, kept[attribute]


def _kept(cls: Definition, maker: Function) -> dict[str, str]:
    """By attribute of an object, the optional parameter of its constructor that it holds and nothing in the class
    changes."""
    own = maker.args.args[0].arg if maker.args.args else ""
    stores = [n for n in nodes_below(cls) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)]
    counts = Counter(node.attr for node in stores)
    found = {}
    for statement in maker.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        held = statement.value.id if isinstance(statement.value, ast.Name) else ""
        if counts[target.attr] == 1 and getattr(target.value, "id", "") == own and held in _optional(maker):
            found[target.attr] = held
    return found


def _is_within(row: int, lines: list[tuple[int, int]]) -> bool:
    return any(first <= row <= last for first, last in lines)


@once_for_each_node
def _defaults(function: ast.AST) -> dict[str, tuple[object]]:
    """The optional parameters of a function whose defaults are constants."""
    assert isinstance(function, Function)
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    given = [*zip(reversed(positional), reversed(spec.defaults), strict=False)]
    given += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    found = ((parameter.arg, constants(default)) for parameter, default in given)
    return {name: value for name, value in found if value is not None}


def _positional(called: Called) -> list[str]:
    """The parameters that a call fills in their order."""
    spec = called.function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    return names[1:] if isinstance(called.holder, ast.ClassDef) else names


def _calls_by(file: Source, mention: Mention, name: str, *, made: bool) -> list[tuple[Called, ast.Call]] | None:
    """The calls of a function by what mentions it, or of the objects that it makes of a class; None where one may be
    missing."""
    holder, names = mention.definition, local_names(file.tree, name) | {name}
    if holder is None or not mention.called:
        return None
    if not made:
        within = mention.method or holder
        functions = [within] if isinstance(within, Function) else []
        found = [(Called(file, holder, f), call) for f in functions for call in _named_calls(f, names, name)]
        return found or None
    if isinstance(holder, Function):
        return _of_objects(Called(file, holder, holder), names, frozenset())
    kept = frozenset(attribute for attribute, of in made_attributes(holder).items() if not names.isdisjoint(of))
    if any(_is_asked_of_another(node, kept) for node in nodes_below(file.tree)):
        return None
    found = []
    for cls in _with_derived(file.tree, holder) if kept else ():
        for function in _functions(cls):
            calls = _of_objects(Called(file, cls, function), frozenset(), kept)
            if calls is None:
                return None
            found += calls
    return found or None


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


def _named_calls(function: Function, names: frozenset[str], name: str) -> Iterator[ast.Call]:
    for node in nodes_below(function):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", None) in names or (isinstance(called, ast.Attribute) and called.attr == name):
                yield node


def _of_objects(caller: Called, makers: frozenset[str], kept: frozenset[str]) -> list[tuple[Called, ast.Call]] | None:
    """The calls, in one function, of what it makes with some names, or of what some attributes of its object hold."""
    uses, found = _Uses(caller.function), []
    own = caller.function.args.args[0].arg if caller.function.args.args else ""
    for node in nodes_below(caller.function):
        made = isinstance(node, ast.Call) and getattr(node.func, "id", "") in makers
        held = isinstance(node, ast.Attribute) and node.attr in kept and getattr(node.value, "id", "") == own
        if made or (held and isinstance(getattr(node, "ctx", None), ast.Load)):
            calls = uses.calls(node)
            if calls is None:
                return None
            found += [(caller, call) for call in calls]
    return found


class _Uses:
    """What a function does with its objects."""

    def __init__(self, function: Function) -> None:
        self._nodes = nodes_below(function)
        self._parents = {id(child): node for node in self._nodes for child in ast.iter_child_nodes(node)}

    def calls(self, node: ast.AST) -> list[ast.Call] | None:
        """The calls of what an expression gives, or of its items; None where it may be called elsewhere."""
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Call):
            if parent.func is node:
                return [parent]
            name = getattr(parent.func, "id", "")
            return self.calls(parent) if name in _PASSING else [] if name in _ASKING else None
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
