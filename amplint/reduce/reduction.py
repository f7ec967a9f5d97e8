"""A syntax tree made smaller step by step, as long as its text still gives the finding."""

from __future__ import annotations

import ast
import time
from typing import TYPE_CHECKING, Any

from amplint.reduce.alone import rows_of, statements
from amplint.reduce.unbound import unbound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LISTS = (
    *("body", "orelse", "finalbody", "handlers", "cases", "decorator_list", "bases", "names", "targets", "items"),
    *("elts", "ifs", "generators"),
)
"""Lists whose items can go one by one. Parameters and arguments stay: the calls go on to fit what they call."""
_OPTIONAL = ("annotation", "returns", "optional_vars", "msg", "cause", "guard")
"""Fields that may be empty in some node that has them."""
_HOLDING = (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Starred, ast.Await, ast.NamedExpr)
"""Expressions in whose place a part may stand."""
_BLOCKS = ("body", "orelse", "finalbody")


class TimeUpError(Exception):
    """The time limit is reached; the tree is the smallest so far."""


class Reduction:
    """A tree, of which the statement ``marked`` is the one that the finding lies in.

    ``shows`` says whether a text still gives the finding in some of its rows. No step leaves a name that is read and
    that nothing binds. ``deadline`` is the time of :func:`time.monotonic` behind which every attempt raises TimeUpError
    and leaves the tree as it is.
    """

    def __init__(
        self, tree: ast.Module, marked: ast.stmt, shows: Callable[[str, range], bool], deadline: float
    ) -> None:
        self.tree = tree
        self._marked = marked
        self._shows = shows
        self.deadline = deadline
        self._refused: set[str] = set()
        self._unbound: frozenset[str] | None = None
        self.text = ""
        self.rows = range(0)

    def attempt(self, owner: ast.AST, field: str, value: object) -> bool:
        """Set a field if that makes the text shorter and leaves the finding."""
        before = getattr(owner, field)
        setattr(owner, field, value)
        held = False
        try:
            held = self.holds(shorter=True)
        finally:
            if not held:
                setattr(owner, field, before)
        return held

    def holds(self, *, shorter: bool = False) -> bool:
        """Whether the tree's own text, without comments and in one layout, gives the finding, and, if wanted so, is
        shorter than the last that did. Raises TimeUpError."""
        if time.monotonic() > self.deadline:
            raise TimeUpError
        return self._shown(shorter=shorter)

    def begins(self) -> bool:
        """Whether the tree as it was given does, whatever the time."""
        return self._shown(shorter=False)

    def _shown(self, *, shorter: bool) -> bool:
        try:
            text = ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"
            again = statements(ast.parse(text))
            if self._unbound is None:
                self._unbound = unbound(text)
            elif not unbound(text) <= self._unbound:
                return False
        except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError):  # what has no text
            return False
        if text in self._refused or (shorter and len(text) >= len(self.text)):
            return False
        places = [i for i, statement in enumerate(statements(self.tree)) if statement is self._marked]
        if len(places) == 1 and len(again) == len(statements(self.tree)):
            rows = rows_of(again[places[0]])
            if self._shows(text, rows):
                self.text, self.rows = text, rows
                return True
        self._refused.add(text)
        return False

    def run(self) -> None:
        """Make the tree as small as the steps known here can. Raises TimeUpError."""
        size = -1
        while size != len(self.text):
            size = len(self.text)
            self._keep_what_is_named()
            for step in (self._without_items, self._without_optional, self._unwrapped, self._in_place_of_parents):
                step()

    def _keep_what_is_named(self) -> None:
        """Of the statements at the top, those that bind a name on which the marked one rests."""
        top = self.tree.body
        kept = {statement for statement in top if self._marked in statements(statement)}
        pending = list(kept)
        while pending:
            names = {node.id for node in ast.walk(pending.pop()) if isinstance(node, ast.Name)}
            found = [one for one in top if one not in kept and not names.isdisjoint(_bound(one))]
            kept.update(found)
            pending += found
        self.attempt(self.tree, "body", [statement for statement in top if statement in kept])

    def _without_items(self) -> None:
        """Without ever smaller parts of each list: statements, arguments, bases, decorators."""
        for node in self._nodes():
            for field, value in ast.iter_fields(node):
                unpacked = isinstance(getattr(node, "ctx", None), ast.Store)
                if isinstance(value, list) and field in _LISTS and not unpacked:
                    self._minimise(node, field)

    def _minimise(self, owner: ast.AST, field: str) -> None:
        size = len(getattr(owner, field))
        while size:
            start = 0
            while start < len(items := getattr(owner, field)) and not _is_filler(items):
                kept = list(filter(_stays, items[start : start + size]))
                rest: list[Any] = items[:start] + kept + items[start + size :]
                if len(rest) == len(items) or not self.attempt(owner, field, rest or _filler(owner, field)):
                    start += size
            size //= 2

    def _without_optional(self) -> None:
        for node in self._nodes():
            for field in _OPTIONAL:
                if getattr(node, field, None) is not None:
                    self.attempt(node, field, None)

    def _unwrapped(self) -> None:
        """What stands in a block in the place of the block."""
        for node in self._nodes():
            for field in _BLOCKS:
                index = 0
                while isinstance(items := getattr(node, field, None), list) and index < len(items):
                    inner = [block for name in _BLOCKS if isinstance(block := getattr(items[index], name, None), list)]
                    if isinstance(items[index], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                        inner = []
                    if not any(self.attempt(node, field, [*items[:index], *b, *items[index + 1 :]]) for b in inner):
                        index += 1

    def _in_place_of_parents(self) -> None:
        """Parts of an expression in its place."""
        for node in self._nodes():
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.expr):
                    self._replace(node, field, value)
                elif isinstance(value, list):
                    for index, item in enumerate(value):
                        if isinstance(item, ast.expr):
                            self._replace_item(node, field, index, item)

    def _replace(self, node: ast.AST, field: str, value: ast.expr) -> None:
        standing: ast.expr | None = value
        while standing is not None:
            standing = next((part for part in _parts(standing) if self.attempt(node, field, part)), None)

    def _replace_item(self, node: ast.AST, field: str, index: int, item: ast.expr) -> None:
        for part in _parts(item):
            items = list(getattr(node, field))
            items[index] = part
            if self.attempt(node, field, items):
                return

    def _nodes(self) -> Iterator[ast.AST]:
        """Every node that is still in the tree when its turn comes, from the top down."""
        pending: list[ast.AST] = [self.tree]
        while pending:
            node = pending.pop(0)
            yield node
            pending.extend(ast.iter_child_nodes(node))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds outside of functions and classes."""
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
    return found


def _parts(value: ast.expr) -> list[ast.expr]:
    """What may stand in the place of an expression: of a call what the method is called on, and the arguments."""
    if isinstance(value, ast.Call):
        return [*([value.func.value] if isinstance(value.func, ast.Attribute) else []), *value.args]
    if not isinstance(value, _HOLDING):
        return []
    return [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]


def _stays(item: ast.AST) -> bool:
    """Whether what holds an item would fail without it: a call of the base's constructor, ``@staticmethod``."""
    if isinstance(item, ast.Name):
        return item.id in ("staticmethod", "classmethod", "property")
    return isinstance(item, ast.Expr) and ast.unparse(item).endswith(".__init__()")


def _filler(owner: ast.AST, field: str) -> list[ast.stmt]:
    """What stands in a list that may not be empty."""
    return [ast.Pass()] if field == "body" and not isinstance(owner, ast.Module) else []


def _is_filler(items: list[Any]) -> bool:
    return len(items) == 1 and isinstance(items[0], ast.Pass)
