"""Which code of a file runs on weights: what the ``forward`` of a module that owns them reaches.

Half weights change that code, and the tensors in it. A loss, a metric, a plain function that nothing of the kind
reaches, gets whatever its callers have.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.compiling import kept, ordinary
from amplint.infer.entry.ownership import Method, Owners, methods
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.joining import options_of
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class, Function
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.torch_model import comm_hooks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.lattice.values import Value
    from amplint.infer.names.namespace import Namespace
    from amplint.infer.state.session import Session

Rows = tuple[int, int]


@ordinary
class WeightReach:
    """What runs on weights in one file; followed when first asked for.

    Names and attributes that reached code mentions are taken to be called, so the answer errs to the side of reached:
    functions, the classes that it makes with their ``forward``, their methods that it names, what a table at the top
    level holds. What an owner is handed where it is made is reached with it, and so are its methods that read its
    weights, whoever calls those. Where no base of an owner shows its ``forward``, all its methods are. Optimizers, what
    gets buckets of gradients, and Functions, which are written to train weights, are reached by themselves.
    """

    def __init__(
        self,
        session: Session,
        namespace: Namespace,
        local: Iterable[Class],
        *,
        any_module: bool = False,
        by_calling: bool = False,
    ) -> None:
        self._session = session
        self._any_module = any_module
        self._by_calling = by_calling
        self._owners = Owners(session)
        self._namespace = namespace
        self._local = tuple(cls for cls in local if cls.namespace is namespace)
        self._held: dict[int, Class] = {}
        self._functions: dict[int, Function] = {}
        self._statements: set[int] = set()
        self._named: set[str] = set()
        self._pending: list[tuple[ast.AST, bool]] = []

    def holds(self, row: int) -> bool:
        """Whether what stands on a line runs on weights: its function does, or outside of functions its class."""
        functions, reached = self._lines
        if row in functions:
            return row in reached
        return any(_encloses(_rows(cls.node), row) for cls in self._held.values())

    @kept
    def of_modules(self) -> WeightReach:
        """The same of all modules, those without weights too: what a model or its loss runs."""
        return WeightReach(self._session, self._namespace, self._local, any_module=True)

    @kept
    def of_calls(self) -> WeightReach:
        """The same of what calling a module runs, or a base that is not seen may: no method that is there for the
        module's users alone."""
        return WeightReach(self._session, self._namespace, self._local, by_calling=True)

    def of_module(self, row: int) -> bool:
        """Whether a line stands in a class that is a module, with weights or without."""
        return any(map(classes.is_module, self.around(row)))

    def around(self, row: int) -> list[Class]:
        """The classes that a line stands in."""
        return [cls for cls in (*self._classes, *self._local) if _encloses(_rows(cls.node), row)]

    @kept
    def _defined(self) -> tuple[Value, ...]:
        """What the names at the top of the file stand for."""
        named = (self._owners.resolved(self._namespace, ast.Name(name)) for name in self._namespace.defined)
        return tuple(option for value in named for option in options_of(value))

    @kept
    def _classes(self) -> tuple[Class, ...]:
        found = self._defined
        return tuple(value for value in found if isinstance(value, Class) and value.namespace is self._namespace)

    @kept
    def _lines(self) -> tuple[frozenset[int], frozenset[int]]:
        """The lines of all functions of the file, and of those that are reached."""
        self._follow()
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        every = frozenset(_rows(node) for node in nodes_below(self._namespace.tree) if isinstance(node, kinds))
        own = (function.node for function in self._functions.values() if function.namespace is self._namespace)
        reached = every.intersection(_rows(node) for node in own if isinstance(node, kinds))
        return _lines_of(every), _lines_of(reached)

    def _follow(self) -> None:
        namespace, defined = self._namespace, self._classes
        for value in (*self._defined, *(member for cls in defined for member in cls.members.values())):
            function = _undecorated(value)
            if isinstance(function, Function) and any(
                comm_hooks.takes_bucket(function, parameter) for parameter in function.node.args.args
            ):
                self._reach(function)
        owners = [cls for cls in (*defined, *self._local) if self._leads(cls)]
        names = {cls.name for cls in owners}
        for cls in owners:
            self._hold(cls)
        for node in nodes_below(namespace.tree) if names else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                self._pending += [(given, True) for given in (*node.args, *node.keywords)]
        while self._pending:
            self._visit(*self._pending.pop())

    def _leads(self, cls: Class) -> bool:
        """Whether what a class does counts, without anything seen to call it."""
        return self._owners.owns(cls) or _is_for_training(cls) or (self._any_module and classes.may_be_module(cls))

    def _hold(self, cls: Class) -> None:
        """A class whose objects reached code has: its constructor and what calling the object runs are reached."""
        if id(cls.node) in self._held:
            return
        self._held[id(cls.node)] = cls
        unseen = classes.has_unknown_base(cls) and (self._by_calling or classes.find_member(cls, "forward") is None)
        whole = _is_for_training(cls) or unseen
        if self._owners.owns(cls) and not self._by_calling:
            for method in methods(cls):
                if self._owners.works_on_weights(method, cls):
                    self._reach(cls.members.get(method.name))
        for name in _members(cls):
            if whole or name in self._named or name == "forward" or (name.startswith("__") and name.endswith("__")):
                self._reach(classes.find_member(cls, name))

    def _reach(self, value: Value | None) -> None:
        while isinstance(value, Decorated):
            self._reach(value.wrapper)
            value = value.function
        for option in options_of(value) if value is not None else ():
            if isinstance(option, Class) and option.namespace is self._namespace:
                self._hold(option)
            elif isinstance(option, Function) and id(option.node) not in self._functions:
                self._functions[id(option.node)] = option
                self._pending.append((option.node, option.namespace is self._namespace))

    def _visit(self, node: ast.AST, own: bool) -> None:
        """Reach what a piece of code mentions; of what a base does in another file, the methods that it calls."""
        for part in nodes_below(node):
            if isinstance(part, ast.Attribute):
                self._name(part.attr)
            elif own and isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self._mention(part)

    def _name(self, attribute: str) -> None:
        if attribute not in self._named:
            self._named.add(attribute)
            for cls in [*self._held.values()]:
                self._reach(classes.find_member(cls, attribute))

    def _mention(self, name: ast.Name) -> None:
        """What a name of the file stands for, if the file defines it."""
        for binding in self._namespace.parsed(name.id):
            if isinstance(binding, (ast.Assign, ast.AnnAssign)):
                if binding.value is not None and id(binding) not in self._statements:
                    self._statements.add(id(binding))
                    self._pending.append((binding.value, True))
            elif isinstance(binding, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._reach(self._owners.resolved(self._namespace, name))


def _lines_of(found: Iterable[Rows]) -> frozenset[int]:
    return frozenset(row for first, last in found for row in range(first, last + 1))


def _encloses(rows: Rows, row: int) -> bool:
    return rows[0] <= row <= rows[1]


def _undecorated(value: Value) -> Value:
    while isinstance(value, Decorated):
        value = value.function
    return value


def _is_for_training(cls: Class) -> bool:
    """An optimizer, or a Function: what has a ``backward`` of its own is differentiated for the sake of weights."""
    return classes.is_autograd_function(cls) or (classes.torch_base(cls) or "").startswith("torch.optim.")


def _members(cls: Class) -> Iterator[str]:
    """Names of the methods of a class and of its bases."""
    for base in classes.ancestry(cls):
        if isinstance(base, Class):
            yield from (method.name for method in methods(base))


def _rows(node: Method | ast.ClassDef) -> Rows:
    """First and last line, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, node.end_lineno or node.lineno
