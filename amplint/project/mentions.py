"""Where a file mentions what it or other files define, and what the attributes of its objects are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import children, nodes_below, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mention(NamedTuple):
    """A mention of a name, in a function or class at the top of a file (None: outside of all) and a method of it.

    ``called``: the name is called there, on line ``row``, from ``column`` on, in bytes.
    """

    definition: Definition | None
    method: Function | None
    called: bool
    row: int
    column: int


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """The functions and classes at the top of a file; of several with one name the last."""
    return {s.name: s for s in tree.body if isinstance(s, Definition)}


@once_for_each_node
def inner_rows(definition: ast.AST) -> frozenset[int]:
    """The lines of the functions and classes within a definition."""
    inner = (node for node in nodes_below(definition) if node is not definition and isinstance(node, Definition))
    return frozenset(row for node in inner for row in _rows(node))


@once_for_each_node
def methods_by_row(cls: ast.ClassDef) -> dict[int, list[str]]:
    """By line, the methods that it stands in."""
    found: dict[int, list[str]] = {}
    for method in (s for s in cls.body if isinstance(s, Function)):
        for row in _rows(method):
            found.setdefault(row, []).append(method.name)
    return found


def _rows(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@once_for_each_node
def mentions(tree: ast.Module) -> dict[str, list[Mention]]:
    """By name, all mentions but those in annotations and tests of a type, in the list of what a file exports, and where
    a class or function itself is shown."""
    found: dict[str, list[Mention]] = {}
    imported, unnamed = _bound(tree)
    for statement in tree.body:
        definition = statement if isinstance(statement, Definition) else None
        methods = {id(s) for s in definition.body} if isinstance(definition, ast.ClassDef) else set()
        if _lists_exports(statement):
            continue
        for part in ast.iter_child_nodes(statement) if definition is not None else (statement,):
            method = part if isinstance(part, Function) and id(part) in methods else None
            for name, called, node in _names(part, imported, unnamed):
                mention = Mention(definition, method, called, node.lineno, node.col_offset)
                found.setdefault(name, []).append(mention)
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


def takes(tree: ast.Module, module: str, name: str) -> bool:
    """Whether a file imports a name, or all names of a module."""
    for node in nodes_below(tree):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if name in names or ("*" in names and (node.module or "").rpartition(".")[2] == module):
                return True
    return False


def local_names(tree: ast.Module, name: str) -> frozenset[str]:
    """What a file calls something that it imports or defines under a name."""
    return frozenset(own for own, original in _bound(tree)[0].items() if original == name)


ASKING = ("isinstance", "issubclass", "hasattr", "id", "type", "print", "repr", "help", "len")
"""Builtins that run nothing of what they get."""


def _names(tree: ast.AST, imported: dict[str, str], unnamed: bool) -> Iterator[tuple[str, bool, ast.expr]]:
    """Names that the file imports or defines, and attributes of those, each with whether it is called, and the node."""
    nodes = nodes_below(tree)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {id(call.func) for call in calls}
    passed_over = {
        id(part)
        for outer in (
            *(call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("isinstance", "super")),
            *(given for call in calls if getattr(call.func, "id", "") in ASKING for given in call.args if _root(given)),
            *(node.annotation for node in nodes if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation),
            *(node.returns for node in nodes if isinstance(node, Function) and node.returns),
        )
        for part in ast.walk(outer)
    }
    for node in nodes:
        if isinstance(node, ast.Name):
            if (unnamed or node.id in imported) and id(node) not in passed_over:
                yield imported.get(node.id, node.id), id(node) in called, node
        elif isinstance(node, ast.Attribute) and _root(node) in imported and id(node) not in passed_over:
            yield node.attr, id(node) in called, node


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


Limit = Callable[[Function], float]
"""The line of a function behind which nothing of it counts."""


def made_of(cls: ast.ClassDef, method: Function, limit: Limit) -> frozenset[str]:
    """Names of what the attributes are made of that a method, and those that it calls, use.

    An attribute that something else than the class sets may be made of what the class hands on.
    """
    functions = {s.name: s for s in cls.body if isinstance(s, Function)}
    made = _attributes(functions.values())
    row = limit(method)
    used = {attribute for attribute, at in own_attributes(method) if at <= row}
    names = _mentioned(method, row)
    used |= names & functions.keys()
    pending = [*used]
    while pending:
        attribute = pending.pop()
        inner = functions.get(attribute)
        if inner is not None:
            row = limit(inner)
            further = {name for name, at in own_attributes(inner) if at <= row} - used
            used |= further
            pending += further
            names |= _mentioned(inner, row)
        elif attribute in made:
            names |= made[attribute]
        elif attribute not in _PLAIN:
            names |= _handed_on(functions.values())
    return frozenset(names)


def first_work(function: Function) -> int:
    """The last line of the first statement that calls something or multiplies matrices: before it, nothing raises."""
    for statement in function.body:
        if any(isinstance(node, (ast.Call, ast.MatMult)) for node in ast.walk(statement)):
            return statement.lineno if hasattr(statement, "body") else statement.end_lineno or statement.lineno
    return function.lineno


def _mentioned(tree: ast.AST, row: float = inf) -> set[str]:
    """Names and attributes up to a line."""
    parts = [n for n in nodes_below(tree) if isinstance(n, (ast.Name, ast.Attribute)) and n.lineno <= row]
    return {part.id if isinstance(part, ast.Name) else part.attr for part in parts}


_PLAIN = ("training", "dtype", "device")
"""Attributes of every module that hold no other."""
_GROWING = ("append", "insert", "extend", "add_module", "update")


@once_for_each_node
def callers(tree: ast.Module) -> dict[str, set[str]]:
    """By attribute, the methods that call it of their own object; "" for any other mention."""
    found: dict[str, set[str]] = {}
    own: set[int] = set()
    classes = (s for s in tree.body if isinstance(s, ast.ClassDef))
    for method in (s for cls in classes for s in cls.body if isinstance(s, ast.FunctionDef) and s.args.args):
        pending: list[ast.AST] = [*method.body] if not method.decorator_list else []
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            pending += children(node)
            called = node.func if isinstance(node, ast.Call) else None
            receiver = called.value if isinstance(called, ast.Attribute) else None
            if isinstance(receiver, ast.Name) and receiver.id == method.args.args[0].arg:
                assert isinstance(called, ast.Attribute)
                found.setdefault(called.attr, set()).add(method.name)
                own.add(id(called))
    for node in nodes_below(tree):
        if isinstance(node, ast.Attribute) and id(node) not in own:
            found.setdefault(node.attr, set()).add("")
    return found


def own_attributes(method: Function) -> Iterator[tuple[str, int]]:
    """The attributes of its own object that a method mentions, each with the line."""
    own = _own_name(method)
    for node in nodes_below(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            yield node.attr, node.lineno


def _attributes(methods: Iterable[Function]) -> dict[str, set[str]]:
    """By attribute, the names that what is stored there, or added to it, is made of, through variables too."""
    found: dict[str, set[str]] = {}
    for method in methods:
        own, variables = _own_name(method), _variables(method)
        for target, value in _stores(method):
            for part in ast.walk(target) if not _is_calculated(value) else ():
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == own:
                    found.setdefault(part.attr, set()).update(_made_through(variables, _mentioned(value)))
    return found


def _is_calculated(value: ast.expr) -> bool:
    """Whether a value is a number that others give: ``planes * block.expansion``."""
    if not isinstance(value, ast.BinOp) or isinstance(value.op, (ast.Add, ast.BitOr)):
        return False
    operands = (value.left, value.right)
    return all(isinstance(part, (ast.Name, ast.Attribute, ast.Constant)) or _is_calculated(part) for part in operands)


def made_attributes(cls: ast.ClassDef) -> dict[str, set[str]]:
    """By attribute, the names that what the methods of a class store there, or add to it, is made of."""
    return _attributes(s for s in cls.body if isinstance(s, Function))


def _handed_on(methods: Iterable[Function]) -> set[str]:
    """Names that what methods hand on is made of: all that they do not just store in a variable or an attribute."""
    found: set[str] = set()
    for method in methods:
        own = _own_name(method)
        stored = [value for target, value in _stores(method) if _is_kept(own, target) and not _is_given(own, value)]
        within = {id(node) for value in stored for node in nodes_below(value)}
        found |= _made_through(
            _variables(method),
            {
                node.id if isinstance(node, ast.Name) else node.attr
                for node in nodes_below(method)
                if isinstance(node, (ast.Name, ast.Attribute))
                and id(node) not in within
                and isinstance(node.ctx, ast.Load)
            },
        )
    return found


def _own_name(method: Function) -> str:
    return method.args.args[0].arg if method.args.args else ""


def _variables(method: Function) -> dict[str, set[str]]:
    """By variable, the names that what is assigned to it, or added to it or a part of it, mentions."""
    found: dict[str, set[str]] = {}
    own = _own_name(method)
    for target, value in _stores(method):
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and part.id != own:
                found.setdefault(part.id, set()).update(_mentioned(value))
    return found


def _made_through(variables: dict[str, set[str]], names: set[str]) -> set[str]:
    """Names, and those that the variables among them are made of."""
    pending, known = [*names], set(names)
    while pending:
        further = variables.get(pending.pop(), set()) - known
        known |= further
        pending += further
    return known


def _is_kept(own: str, target: ast.expr) -> bool:
    """Whether a target is a variable, or an attribute of the object itself."""
    return isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and _root(target) == own)


def _is_given(own: str, value: ast.expr) -> bool:
    """Whether a value calls a method of the object itself, or of what it derives from."""
    calls = (node.func for node in nodes_below(value) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and _root(called) in (own, "") for called in calls)


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
