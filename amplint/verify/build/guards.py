"""Which options decide whether a line runs: the tests around it and before it, and what they ask of the options.

Read from the source of a class: a test of a forward's parameter asks it of the call, a test of ``self.name`` asks it of
the constructor's parameters from which that attribute is made.
"""

from __future__ import annotations

import ast
import copy
import enum
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.infer.syntax.control import goes_on
from amplint.verify.build.signatures import source_tree
from amplint.verify.targets import self_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRUE, FALSE, NONE, SOME, EQUAL = "true", "false", "none", "some", "equal"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_CALLERS = 2
"""How many calls back the tests around a line are followed."""


@dataclass(frozen=True)
class Wish:
    """What a test asks of a name: ``true``, ``false``, ``none``, ``some`` (not None), or ``equal`` to ``value``.

    ``attribute``: the name is one of ``self``.
    """

    name: str
    attribute: bool
    wanted: str
    value: Any = None

    def granted_by(self, value: Any) -> bool:
        """Whether a plain value is what was asked for. A switch is none of a layer where it is off."""
        if isinstance(value, bool) and self.wanted in (NONE, SOME):
            return value is (self.wanted == SOME)
        answers = {NONE: value is None, SOME: value is not None, TRUE: bool(value), FALSE: not value}
        return answers[self.wanted] if self.wanted in answers else bool(value == self.value)


@dataclass(frozen=True)
class Sources:
    """The syntax of a class and of those it inherits from, the nearest first, each with its file and first row."""

    classes: tuple[tuple[ast.ClassDef, str, int], ...]

    @classmethod
    def of(cls, target: type) -> Sources:
        """Those of ``target`` up to torch's own."""
        found = []
        for base in target.__mro__:
            if base is object or base.__module__.partition(".")[0] == "torch":
                break
            tree = source_tree(base)
            try:
                file, row = inspect.getsourcefile(base), inspect.getsourcelines(base)[1]
            except (OSError, TypeError):
                continue
            node = tree.body[0] if tree is not None and tree.body else None
            if isinstance(node, ast.ClassDef) and file is not None:
                found.append((_with_members(node, vars(sys.modules[base.__module__])), file, row))
        return cls(tuple(found))

    def methods(self) -> Iterator[_Function]:
        """Every method, also what another one overrides."""
        for node, _, _ in self.classes:
            yield from (item for item in node.body if isinstance(item, _Function))

    def around(self, file: str, row: int) -> list[Wish]:
        """What has to hold for the line to run, as far as tests of names say it; [] for one outside these classes."""
        for node, path, first in self.classes:
            inside = row - first + 1
            method = next((m for m in node.body if isinstance(m, _Function) and _holds(m, inside)), None)
            if os.path.realpath(path) == os.path.realpath(file) and method is not None:
                return list(dict.fromkeys(self._of_line(method, inside, _MOST_CALLERS)))
        return []

    def _of_line(self, method: _Function, row: int, callers: int) -> Iterator[Wish]:
        yield from _tests_before(method.body, row)
        if method.name in ("forward", "__init__") or not callers:
            return
        for caller in self.methods():
            for call in ast.walk(caller):
                if isinstance(call, ast.Call) and caller is not method and self_attribute(call.func) == method.name:
                    yield from self._of_line(caller, call.lineno, callers - 1)
                    return

    def tested(self) -> list[Wish]:
        """What every test of the classes asks of a name, in the order of the source, either way once."""
        found: list[Wish] = []
        for method in self.methods():
            for node in ast.walk(method):
                if isinstance(node, (ast.If, ast.IfExp)):
                    found += [*_asked(node.test, wanted=True), *_asked(node.test, wanted=False)]
        return list(dict.fromkeys(found))

    def handles(self, name: str) -> bool:
        """Whether the nearest ``forward`` computes with the name, or asks it for an attribute or item: as of a tensor,
        not of a switch."""
        forward = next((method for method in self.methods() if method.name == "forward"), None)
        for node in ast.walk(forward) if forward is not None else ():
            parts: list[ast.expr] = []
            if isinstance(node, (ast.Attribute, ast.Subscript)):
                parts = [node.value]
            elif isinstance(node, ast.BinOp):
                parts = [node.left, node.right]
            if any(isinstance(part, ast.Name) and part.id == name for part in parts):
                return True
        return False

    def made_from(self, attribute: str) -> list[str]:
        """The names that the assignments of ``self.attribute`` in ``__init__`` use, and those that the tests around
        them do."""
        found: list[str] = []
        for method in self.methods():
            if method.name != "__init__":
                continue
            for node in ast.walk(method):
                for value in _assigned(node, attribute):
                    found += [part.id for part in ast.walk(value) if isinstance(part, ast.Name)]
                    found += [wish.name for wish in _tests_before(method.body, value.lineno) if not wish.attribute]
        return list(dict.fromkeys(found))


def _with_members(node: ast.ClassDef, names: Mapping[str, Any]) -> ast.ClassDef:
    """A class whose comparisons have the values of enumerations' members, and of constants of its file, in the place of
    their names."""
    copied = copy.deepcopy(node)
    for test in ast.walk(copied):
        if isinstance(test, ast.Compare):
            test.comparators = [_as_constant(part, names) for part in test.comparators]
    return copied


def _as_constant(node: ast.expr, names: Mapping[str, Any]) -> ast.expr:
    value: Any = None
    if isinstance(node, ast.Name):
        value = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = names.get(node.value.id)
        value = owner.__members__.get(node.attr) if isinstance(owner, enum.EnumMeta) else None
    if not isinstance(value, (enum.Enum, str, int)):
        return node
    constant: Any = value
    return ast.copy_location(ast.Constant(constant), node)


def _assigned(node: ast.AST, attribute: str) -> Iterator[ast.expr]:
    """What a statement assigns to ``self.attribute``, also item by item: ``self.a, self.b = a, b``."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if self_attribute(target) == attribute:
            yield node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=False)
            yield from (value for part, value in pairs if self_attribute(part) == attribute)


def _holds(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or node.lineno)


def _tests_before(body: list[ast.stmt], row: int) -> Iterator[Wish]:
    """The tests around a line, and those before it in the same blocks that leave."""
    for statement in body:
        if _holds(statement, row):
            if isinstance(statement, ast.If):
                if any(_holds(inner, row) for inner in statement.body):
                    yield from _asked(statement.test, wanted=True)
                elif any(_holds(inner, row) for inner in statement.orelse):
                    yield from _asked(statement.test, wanted=False)
            for block in ("body", "orelse", "finalbody"):
                yield from _tests_before(getattr(statement, block, []), row)
            return
        if (
            isinstance(statement, ast.If)
            and not statement.orelse
            and statement.lineno < row
            and not goes_on(statement.body)
        ):
            yield from _asked(statement.test, wanted=False)


def _asked(test: ast.expr, *, wanted: bool) -> Iterator[Wish]:
    """What makes a test true, or false."""
    name = _named(test)
    if name is not None:
        yield Wish(*name, TRUE if wanted else FALSE)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _asked(test.operand, wanted=not wanted)
    elif isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And) is wanted
        for value in test.values if every else test.values[:1]:
            yield from _asked(value, wanted=wanted)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        yield from _compared(test, wanted=wanted)
    elif isinstance(test, ast.Call) and len(test.args) == 1 and not test.keywords:
        asked = _named(test.args[0])  # a predicate of one name: most ask whether there is something
        if asked is not None:
            yield Wish(*asked, SOME if wanted else NONE)


def _compared(test: ast.Compare, *, wanted: bool) -> Iterator[Wish]:
    name, op, right = _named(test.left), test.ops[0], test.comparators[0]
    if name is None:
        return
    if isinstance(op, (ast.NotEq, ast.IsNot, ast.NotIn)):
        wanted = not wanted
    if (
        isinstance(right, ast.Constant)
        and right.value is None
        and isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
    ):
        yield Wish(*name, NONE if wanted else SOME)
    elif isinstance(right, ast.Constant) and isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        if wanted:
            yield Wish(*name, EQUAL, right.value)
    elif isinstance(right, (ast.Tuple, ast.List, ast.Set)) and isinstance(op, (ast.In, ast.NotIn)) and wanted:
        first = next((item for item in right.elts if isinstance(item, ast.Constant)), None)
        if first is not None:
            yield Wish(*name, EQUAL, first.value)


def _named(node: ast.expr) -> tuple[str, bool] | None:
    """A name, or an attribute of ``self``; whether a module trains is no option."""
    if isinstance(node, ast.Name):
        return node.id, False
    attribute = self_attribute(node)
    return (attribute, True) if attribute is not None and attribute != "training" else None
