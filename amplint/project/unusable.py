"""Lines that nobody uses: whatever runs them raises, before or behind them, in float32 too.

It reads a name that nothing binds, or that torch does not have, or calls what does not take its arguments or raises so
itself, or stands behind a ``raise`` of the same block; or, in the file that is checked, asks its object for an
attribute that nothing gives. A constructor that raises leaves its class without objects, a module that raises leaves
nothing.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.never_run import never_run
from amplint.infer.syntax.surely import Part, evaluated, last_line, parts, transparent
from amplint.project.attributes import is_static, last_name
from amplint.project.mentions import Function
from amplint.project.raising import Raised, raising

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from amplint.data.newer import Release
    from amplint.infer.names.definitions import Class
    from amplint.project.attributes import Attributes, Rows
    from amplint.project.callees import Callee, Callees
    from amplint.source import Source


class _Body(NamedTuple):
    """What is run together: a function, or the top level of a file (``function`` None), and the class that a method
    belongs to."""

    function: Function | None
    cls: ast.ClassDef | None
    body: list[ast.stmt]


class _Step(NamedTuple):
    """A call, or what raises, that is run on every way through some lines of a body."""

    part: Part
    node: ast.AST


class Unusable:
    """The unusable lines of a file and of others in its project. ``named`` gives the files that have a word, None where
    they are too many; ``around`` the classes that a line of the file stands in; ``refused``, by ``id``, the calls in it
    whose arguments nothing takes that they were seen to call."""

    def __init__(
        self,
        file: Source,
        release: Release,
        callees: Callees,
        attributes: Attributes,
        named: Callable[[str], Iterable[Source] | None],
        around: Callable[[int], Sequence[Class]],
        refused: Container[int],
    ) -> None:
        self._file = file
        self._refused = refused
        self._release = release
        self._callees = callees
        self._attributes = attributes
        self._named = named
        self._around = around
        self._of_file: dict[int, list[Rows]] = {}
        self._failing: dict[int, dict[int, type[Exception]]] = {}
        self._of_class: dict[int, list[Rows]] = {}
        self._given: dict[str, bool] = {}
        self._called: dict[int, Callee | None] = {}
        self._derived: dict[tuple[int, str], set[str] | None] = {}

    def fails(self, file: Source, row: int) -> bool:
        """Whether something raises on every way through a line: not for what a method asks of its object."""
        return _is_on(row, self._lines(file))

    def unanswered(self, row: int) -> bool:
        """Whether a method asks its object for what nothing gives, on every way through a line of the file."""
        return any(_is_on(row, self._attributes.missing(cls)) for cls in self._around(row))

    def holds(self, file: Source, row: int) -> bool:
        """Whether nobody uses a line, or the method that it stands in."""
        if self.fails(file, row):
            return True
        return file is self._file and any(_is_on(row, self._lines_of_class(cls)) for cls in self._around(row))

    def holds_all(self, file: Source, function: Function) -> bool:
        """Whether nobody uses any line of a function."""
        lines = [*self._lines(file)]
        if file is self._file:
            lines += [rows for cls in self._around(function.lineno) for rows in self._lines_of_class(cls)]
        return _is_within(function, lines)

    def _lines(self, file: Source) -> list[Rows]:
        key = id(file.tree)
        if key not in self._of_file:
            self._of_file[key] = []
            self._of_file[key] = self._found(file)
        return self._of_file[key]

    def _lines_of_class(self, cls: Class) -> list[Rows]:
        """Those of a class for its attributes, and of the methods that only lines run which nobody uses."""
        key = id(cls.node)
        if key not in self._of_class:
            found = [*self._attributes.missing(cls)]
            makers = [s for s in cls.node.body if isinstance(s, Function) and s.name == "__init__"]
            if any(_is_within(maker, found) for maker in makers):
                found += self._objects(self._file, cls.node)
            known = [*found, *self._lines(self._file)]
            methods = [s for s in cls.node.body if isinstance(s, Function) and not is_static(s)] if known else []
            rest = [m for m in methods if m.name != "forward" and not m.name.endswith("__")]
            while ended := [m for m in rest if not _is_within(m, known) and self._is_run_on(cls, m.name, known)]:
                found += map(_rows, ended)
                known += map(_rows, ended)
            self._of_class[key] = found
        return self._of_class[key]

    def _is_run_on(self, cls: Class, name: str, lines: list[Rows]) -> bool:
        """Whether all mentions of a method lie on some lines of the file."""
        own, *others = self._named(name) or (None,)
        if own is None or any(spellings_of(other.tree, name, cls.name) for other in others):
            return False
        rows = [node.lineno for node in spellings_of(own.tree, name, cls.name)]
        return bool(rows) and all(_is_on(row, lines) for row in rows)

    def _found(self, file: Source) -> list[Rows]:
        """The lines of a file: those on every way through which something raises, again for what calls that."""
        raised = raising(file, self._release)
        bodies, contexts = list(_bodies(file.tree)), transparent(file.tree)
        steps = {index: list(_steps(body, contexts, raised)) for index, body in enumerate(bodies)}
        found: list[Rows] = [*never_run(file.tree)]
        failing = self._failing[id(file.tree)] = {}
        done: set[int] = set()
        for body in bodies:
            error = _always_raised(body)
            if error is not None and body.function is not None and body.cls is not None:
                failing[id(body.function)] = error
                found += self._objects(file, body.cls)
        again = True
        while again:
            again = False
            for index, body in enumerate(bodies):
                for step in steps[index]:
                    error = self._error(file, body, step, raised) if id(step.node) not in done else None
                    if error is None or step.part.is_caught(error):
                        continue
                    done.add(id(step.node))
                    found.append((step.part.first, step.part.last))
                    if body.function is None and step.part.always:
                        return [(0, last_line(file.tree.body))]
                    if body.function is not None and _fails(body.function, step.part):
                        again = True
                        failing.setdefault(id(body.function), error)
                        if body.cls is not None and body.function.name == "__init__":
                            found += self._objects(file, body.cls)
        return found

    def _objects(self, file: Source, cls: ast.ClassDef) -> list[Rows]:
        """The methods of the objects of a class whose constructor raises; none where a class that derives has its
        own."""
        if self._derived_define(file, cls.name, "__init__"):
            return []
        return [_rows(s) for s in cls.body if isinstance(s, Function) and not is_static(s)]

    def _error(self, file: Source, body: _Body, step: _Step, raised: dict[int, Raised]) -> type[Exception] | None:
        """What a name, an import or a call raises, wherever it is run."""
        known = raised.get(id(step.node))
        if known is not None:
            return known.error if not self._is_given(file, known.name) else None
        if not isinstance(step.node, ast.Call):
            return None
        if file is self._file and id(step.node) in self._refused and self._is_one(last_name(step.node.func)):
            return TypeError
        callee = self._callee(file, body, step.node)
        if callee is None:
            return None
        if callee.refuses(step.node):
            return TypeError
        self._lines(callee.file)
        return self._failing[id(callee.file.tree)].get(id(callee.node)) if not _is_delayed(callee.node) else None

    def _is_one(self, name: str) -> bool:
        """Whether the project defines one function of a name, so that no class that derives has its own."""
        files = self._named(name)
        trees = {id(file.tree): file.tree for file in (self._file, *files)} if files is not None else {}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return sum(node.name == name for tree in trees.values() for node in nodes_of_kind(tree, *kinds)) == 1

    def _callee(self, file: Source, body: _Body, call: ast.Call) -> Callee | None:
        """What a call runs first, and no class of the project puts something else in its place."""
        if id(call) not in self._called:
            found = self._callees.of(file, call, body.function, body.cls)
            if found is not None and found.method and body.cls is not None:
                found = found if not self._derived_define(file, body.cls.name, found.node.name) else None
            self._called[id(call)] = found
        return self._called[id(call)]

    def _derived_define(self, file: Source, cls: str, name: str) -> bool:
        """Whether a class that derives from another one, by their names, has a function of its own of some name; true
        where they are too many."""
        key = id(file.tree), cls
        if key not in self._derived:
            self._derived[key] = self._functions_of_derived(file, cls)
        functions = self._derived[key]
        return functions is None or name in functions

    def _functions_of_derived(self, file: Source, cls: str) -> set[str] | None:
        files = self._named(cls)
        if files is None:
            return None
        every = [node for other in {id(f): f for f in (file, *files)}.values() for node in _classes(other.tree)]
        derived = [node for node in every if any(last_name(base) == cls for base in node.bases)]
        return {s.name for node in derived for s in node.body if isinstance(s, Function)}

    def _is_given(self, file: Source, name: str) -> bool:
        """Whether some file sets an attribute of that name, or this one has it as a string."""
        if name not in self._given:
            files = self._named(f".{name}")
            self._given[name] = files is None or any(gives(other.tree, name) for other in (file, *files))
        return self._given[name]


def _bodies(tree: ast.Module) -> Iterator[_Body]:
    yield _Body(None, None, tree.body)
    owners = {id(s): node for node in nodes_below(tree) if isinstance(node, ast.ClassDef) for s in node.body}
    for node in nodes_below(tree):
        if isinstance(node, Function):
            yield _Body(node, owners.get(id(node)), node.body)


def _steps(body: _Body, contexts: frozenset[int], raised: dict[int, Raised]) -> Iterator[_Step]:
    for part in parts(body.body, contexts):
        for node in evaluated(part.node) if part.holds is None else ():
            if isinstance(node, ast.Call) or id(node) in raised:
                yield _Step(part, node)


def _fails(function: Function, part: Part) -> bool:
    """Whether a function is left on no way that does not come through a part."""
    return part.always and part.first == function.body[0].lineno


def _is_delayed(function: Function) -> bool:
    """Whether calling a function runs nothing of it yet."""
    return isinstance(function, ast.AsyncFunctionDef) or any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) for statement in function.body for node in nodes_below(statement)
    )


@once_for_each_node
def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in nodes_below(tree) if isinstance(node, ast.ClassDef)]


def gives(tree: ast.Module, name: str) -> bool:
    """Whether a file sets an attribute of that name, other than a method does of its own object, or has it as a
    string."""
    if sets(tree, name):
        return True
    return any(isinstance(node, ast.Constant) and node.value == name for node in nodes_below(tree))


def sets(tree: ast.Module, name: str) -> bool:
    """Whether a file sets an attribute of that name, other than a method does of its own object."""
    methods = [s for cls in _classes(tree) for s in cls.body if isinstance(s, Function) and s.args.args]
    own = {id(node) for method in methods for node in _asked_of(method, name)}
    return any(_sets(node, name) for node in nodes_below(tree) if id(node) not in own)


def _sets(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "setattr":
        return False
    return any(getattr(argument, "value", None) == name for argument in node.args)


def spellings_of(tree: ast.Module, name: str, cls: str) -> list[ast.expr]:
    """Where a file spells a method of a class, as an attribute or a text: not where another class, which does not
    derive from it by name, asks its own object for a method of that name that it defines itself, and not as a key."""
    elsewhere = {*_keys(tree)}
    for other in _classes(tree):
        methods = [s for s in other.body if isinstance(s, Function) and s.args.args]
        derives = other.name == cls or any(last_name(base) == cls for base in other.bases)
        if not derives and any(method.name == name for method in methods):
            elsewhere |= {id(node) for method in methods for node in _asked_of(method, name)}
    spelled = (node for node in nodes_of_kind(tree, ast.Attribute, ast.Constant) if id(node) not in elsewhere)
    return [node for node in spelled if (node.attr if isinstance(node, ast.Attribute) else node.value) == name]


@once_for_each_node
def _keys(tree: ast.Module) -> frozenset[int]:
    """The constants by which something is put into a dict, or looked up in one."""
    keys = [key for node in nodes_of_kind(tree, ast.Dict) for key in node.keys]
    return frozenset(map(id, [*keys, *(node.slice for node in nodes_of_kind(tree, ast.Subscript))]))


def _asked_of(method: Function, name: str) -> Iterator[ast.Attribute]:
    """Where a method asks its own object for an attribute."""
    own = method.args.args[0].arg
    for node in nodes_below(method):
        if isinstance(node, ast.Attribute) and (node.attr, getattr(node.value, "id", "")) == (name, own):
            yield node


def _rows(function: Function) -> Rows:
    return function.body[0].lineno, last_line(function.body)


def _always_raised(body: _Body) -> type[Exception] | None:
    """The error of Python's own that a constructor raises by a statement of its own, whatever it is given."""
    at = next((number for number, one in enumerate(body.body) if isinstance(one, ast.Raise)), None)
    if at is None or body.function is None or body.function.name != "__init__":
        return None
    if any(isinstance(node, ast.Return) for before in body.body[:at] for node in nodes_below(before)):
        return None
    raised = body.body[at]
    assert isinstance(raised, ast.Raise)
    kind = raised.exc.func if isinstance(raised.exc, ast.Call) else raised.exc
    error = getattr(builtins, kind.id, None) if isinstance(kind, ast.Name) else None
    return error if isinstance(error, type) and issubclass(error, Exception) else None


def _is_within(function: Function, lines: list[Rows]) -> bool:
    begin, end = _rows(function)
    return any(first <= begin and end <= last for first, last in lines)


def _is_on(row: int, lines: list[Rows]) -> bool:
    return any(first <= row <= last for first, last in lines)
