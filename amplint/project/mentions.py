"""Where a file mentions what it or other files define, and what the attributes of its objects are made of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.torch_model.modules import MODULE_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mention(NamedTuple):
    """A mention of a name, in a function or class at the top of a file (None: outside of all) and a method of it.

    ``called``: the name is called there; ``base``: a class derives from it.
    """

    definition: Definition | None
    method: Function | None
    called: bool
    base: bool


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """The functions and classes at the top of a file; of several with one name the last."""
    return {s.name: s for s in tree.body if isinstance(s, Definition)}


@once_for_each_node
def mentions(tree: ast.Module) -> dict[str, list[Mention]]:
    """By name, all mentions but those in annotations and tests of a type, and in the list of what a file exports."""
    found: dict[str, list[Mention]] = {}
    imported, unnamed = _bound(tree)
    for statement in tree.body:
        definition = statement if isinstance(statement, Definition) else None
        methods = definition.body if isinstance(definition, ast.ClassDef) else []
        if _lists_exports(statement):
            continue
        for part in ast.iter_child_nodes(statement) if definition is not None else (statement,):
            method = part if part in methods and isinstance(part, Function) else None
            base = isinstance(definition, ast.ClassDef) and part in definition.bases
            for name, called in _names(part, imported, unnamed):
                found.setdefault(name, []).append(Mention(definition, method, called, base))
    return found


def _lists_exports(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _bound(tree: ast.Module) -> tuple[dict[str, str], bool]:
    """What the names that a file imports or defines are where they come from; whether it imports others unnamed."""
    found: dict[str, str] = {name: name for name in definitions(tree)}
    unnamed = False
    for node in nodes_below(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                own = alias.asname or alias.name.partition(".")[0]
                found[own] = alias.name
                unnamed = unnamed or alias.name == "*"
    return found, unnamed


def _names(tree: ast.AST, imported: dict[str, str], unnamed: bool) -> Iterator[tuple[str, bool]]:
    """Names that the file imports or defines, and attributes of those."""
    stack = [(tree, False)]
    while stack:
        node, called = stack.pop()
        if isinstance(node, ast.Name) and (unnamed or node.id in imported):
            yield imported.get(node.id, node.id), called
        elif isinstance(node, ast.Attribute) and _root(node) in imported:
            yield node.attr, called
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "super"):
            continue
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                parts = value if isinstance(value, list) else (value,)
                calls = isinstance(node, ast.Call) and name == "func"
                stack.extend((part, calls) for part in parts if isinstance(part, ast.AST))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def runs_made_of(cls: ast.ClassDef, name: str) -> bool:
    """Whether a method that others may call runs what is made with a name: not ``forward``, nor private.

    To call torch's own methods of a module, as for its parameters, runs nothing of it.
    """
    methods = [s for s in cls.body if isinstance(s, Function)]
    made = {attribute for attribute, names in _attributes(methods).items() if name in names}
    for method in methods:
        if method.name == "forward" or (method.name.startswith("_") and method.name != "__call__"):
            continue
        harmless = {
            id(node.value)
            for node in nodes_below(method)
            if isinstance(node, ast.Attribute) and node.attr in MODULE_METHODS
        }
        for node in nodes_below(method):
            if isinstance(node, ast.Attribute) and node.attr in made and id(node) not in harmless:
                return True
    return False


def made_of(cls: ast.ClassDef, method: Function, row: int) -> frozenset[str] | None:
    """Names of what the attributes are made of that a method, and those that it calls, use up to a line.

    None where they may be made of anything: something else than the class sets them.
    """
    functions = {s.name: s for s in cls.body if isinstance(s, Function)}
    made = _attributes(functions.values())
    used = {attribute for attribute, at in _own_attributes(method) if at <= row}
    names = {node.id for node in nodes_below(method) if isinstance(node, ast.Name) and node.lineno <= row}
    pending = [*used]
    while pending:
        attribute = pending.pop()
        inner = functions.get(attribute)
        if inner is not None:
            further = {name for name, _ in _own_attributes(inner)} - used
            used |= further
            pending += further
            names |= {node.id for node in nodes_below(inner) if isinstance(node, ast.Name)}
        elif attribute in made:
            names |= made[attribute]
        elif attribute not in _PLAIN:
            return None
    return frozenset(names)


_PLAIN = ("training", "dtype", "device")
"""Attributes of every module that hold no other."""
_GROWING = ("append", "insert", "extend", "add_module", "update")


def _own_attributes(method: Function) -> Iterator[tuple[str, int]]:
    own = method.args.args[0].arg if method.args.args else ""
    for node in nodes_below(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            yield node.attr, node.lineno


def _attributes(methods: Iterable[Function]) -> dict[str, set[str]]:
    """By attribute, the names that what is stored there, or added to it, is made of, through variables too."""
    found: dict[str, set[str]] = {}
    for method in methods:
        local: dict[str, set[str]] = {}
        stored: list[tuple[str, set[str]]] = []
        own = method.args.args[0].arg if method.args.args else ""
        for target, value in _stores(method):
            names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)}
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    local.setdefault(part.id, set()).update(names)
                elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == own:
                    stored.append((part.attr, names))
        for attribute, names in stored:
            pending, known = [*names], set(names)
            while pending:
                further = local.get(pending.pop(), set()) - known
                known |= further
                pending += further
            found.setdefault(attribute, set()).update(known)
    return found


def _stores(method: Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is assigned, or added to a list, and where."""
    for node in nodes_below(method):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
            yield from ((node.func.value, given) for given in node.args)
