"""Whether a method asks its object for what nothing in the project gives: an attribute that is never set, or a switch
that is never on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.names.classes import ancestry, find_member, is_plain
from amplint.infer.names.definitions import Class
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.torch_model.modules import of_every_module
from amplint.project.mentions import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.source import Source

_DYNAMIC = ("__dict__", "__getattr__", "__getattribute__", "__setstate__", "setattr", "vars")
"""What may give an object attributes that nobody spells."""
_LATER = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Asked(NamedTuple):
    """An attribute that a method reads of its object before a line; ``true``: the line runs where it is true only."""

    name: str
    true: bool


def unanswered(cls: Class, row: int, named: Callable[[str], Iterable[Source] | None]) -> bool:
    """Whether a line of a class is never run: it stands behind such an attribute.

    What has no ``forward`` may be mixed into a class that has one, and gets attributes there. ``named`` gives the files
    of the project that have a word, None where they are too many.
    """
    method = next((s for s in cls.node.body if isinstance(s, Function) and _encloses(s, row)), None)
    kin = [base for base in ancestry(cls) if isinstance(base, Class)]
    if method is None or not method.args.args or find_member(cls, "forward") is None:
        return False
    if not is_plain(cls) or any(map(_is_dynamic, kin)):
        return False
    for asked in dict.fromkeys(_asked(method.body, row, method.args.args[0].arg)):
        inherited = of_every_module(asked.name) or (not asked.true and find_member(cls, asked.name) is not None)
        files = named(asked.name) if not inherited else None
        if files is not None and not _given(asked, {base.name for base in kin}, files):
            return True
    return False


def _is_dynamic(cls: Class) -> bool:
    names = ({getattr(n, "id", ""), getattr(n, "attr", ""), getattr(n, "name", "")} for n in nodes_below(cls.node))
    return any(found.intersection(_DYNAMIC) for found in names)


def _asked(body: list[ast.stmt], row: int, own: str) -> Iterator[Asked]:
    """What is read on every way to a line, in order."""
    for statement in body:
        if statement.lineno > row or isinstance(statement, (ast.Try, *_LATER)):
            return
        if not hasattr(statement, "body"):
            yield from _read(statement, own)
            continue
        heads = [getattr(statement, name, None) for name in ("test", "iter")]
        heads += [item.context_expr for item in getattr(statement, "items", ())]
        for head in heads:
            yield from _read(head, own) if head is not None else ()
        if not _encloses(statement, row):
            continue
        inner: list[ast.stmt] = getattr(statement, "body", [])
        within = bool(inner) and inner[0].lineno <= row <= (inner[-1].end_lineno or row)
        if isinstance(statement, ast.If):
            yield from _true(statement.test, own, holds=within)
        yield from _asked(inner if within else getattr(statement, "orelse", []), row, own)
        return


def _read(node: ast.AST, own: str) -> Iterator[Asked]:
    """What an expression or statement reads, whatever it comes to."""
    if isinstance(node, _LATER):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
        if isinstance(node.ctx, ast.Load):
            yield Asked(node.attr, true=False)
        return
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.BoolOp):
        parts = node.values[:1]
    elif isinstance(node, ast.IfExp):
        parts = (node.test,)
    for part in parts:
        yield from _read(part, own)


def _true(test: ast.expr, own: str, *, holds: bool) -> Iterator[Asked]:
    """The attributes that are true where a test holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _true(test.operand, own, holds=not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for value in test.values:
            yield from _true(value, own, holds=holds)
    elif holds and isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == own:
        yield Asked(test.attr, true=True)


def _given(asked: Asked, kin: set[str], files: Iterable[Source]) -> bool:
    """Whether something in some files sets an attribute, of a class or of what derives from it, or spells its name."""
    trees = [file.tree for file in files]
    every = [node for tree in trees for node in nodes_below(tree) if isinstance(node, ast.ClassDef)]
    for _ in every:
        derived = {cls.name for cls in every if kin.intersection(map(_last, cls.bases))} - kin
        if not derived:
            break
        kin = kin | derived
    strange: set[int] = set()
    for cls in every:
        for node in nodes_below(cls) if cls.name in kin else ():
            bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not asked.true
            if (bound or isinstance(node, Function)) and asked.name in (getattr(node, f, "") for f in ("name", "id")):
                return True
        for method in cls.body if cls.name not in kin else ():
            strange |= set(_own_stores(method)) if isinstance(method, Function) else set()
    return any(_sets(tree, asked, strange) for tree in trees)


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


def _last(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _encloses(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or row)
