"""One file as the training step needs it: scopes, what each binds, and which call leads to which function.

A *place* names something that may hold an object across statements: a variable of one scope, an attribute of a class's
``self``, an item under a constant key. Two expressions with one place are taken to mean one object.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import children
from amplint.infer.syntax.templates import template_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.syntax.references import Reference

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[object, ...]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NESTED = (*_DEFINITIONS, ast.Lambda)
_APART = (*_NESTED, ast.stmt, ast.ExceptHandler, ast.match_case)
_NOTED = frozenset(
    (
        *(ast.Name, ast.Call, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.withitem, ast.Return),
        *(ast.Import, ast.ImportFrom),
    )
)
"""Kinds of node that a scope notes."""


@dataclass(slots=True, eq=False)
class ClassScope:
    """A class of the file: its own methods, and those of its bases that the file defines."""

    node: ast.ClassDef
    methods: dict[str, Scope] = field(default_factory=dict)
    bases: list[ClassScope] = field(default_factory=list)
    base_names: tuple[str, ...] = ()
    fields: list[tuple[str, ast.expr]] = field(default_factory=list)
    """Names annotated in the class's body."""

    @property
    def root(self) -> ClassScope:
        """The outermost base in the file: the attributes of all its descendants count as one set."""
        cls = self
        for _ in range(8):
            if not cls.bases:
                break
            cls = cls.bases[0]
        return cls

    @property
    def lineage(self) -> list[ClassScope]:
        """The class and those that it derives from, each once, in the order in which methods are looked for."""
        pending, found = [self], list[ClassScope]()
        while pending:
            cls = pending.pop()
            if not any(cls is known for known in found):
                found.append(cls)
                pending += reversed(cls.bases)
        return found

    def derives(self, other: ClassScope) -> bool:
        """Whether it is another class, or derives from that."""
        return any(cls is other for cls in self.lineage)

    def method(self, name: str, skip_own: bool = False) -> Scope | None:
        return next((cls.methods[name] for cls in self.lineage[skip_own:] if name in cls.methods), None)


@dataclass(slots=True, eq=False)
class Scope:
    """A module or a function: the names it binds, its assignments, returns, calls and inner definitions."""

    node: ast.Module | FunctionNode
    parent: Scope | None = None
    owner: ClassScope | None = None
    names: set[str] = field(default_factory=set)
    functions: dict[str, Scope] = field(default_factory=dict)
    classes: dict[str, ClassScope] = field(default_factory=dict)
    assignments: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    annotations: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    returned: list[ast.expr] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)

    @property
    def body(self) -> list[ast.stmt]:
        return self.node.body

    @property
    def first(self) -> str | None:
        """The name of a method's first parameter: its object, its class, or a Function's context."""
        if self.owner is None or isinstance(self.node, ast.Module):
            return None
        arguments = [*self.node.args.posonlyargs, *self.node.args.args]
        return arguments[0].arg if arguments else None

    @property
    def receiver(self) -> str | None:
        """The name of a method's own object, ``self`` by habit."""
        if self.owner is None or isinstance(self.node, ast.Module):
            return None
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod"):
                return None
        return self.first

    def parameters(self) -> list[ast.arg]:
        """The parameters that a call fills by position, without a method's own object."""
        if isinstance(self.node, ast.Module):
            return []
        arguments = [*self.node.args.posonlyargs, *self.node.args.args]
        return arguments[1:] if self.receiver is not None else arguments

    def function(self, name: str) -> Scope | None:
        """The function that a name of this scope is, or the only one of the file that some assignment gives it."""
        if name in self.functions:
            return self.functions[name]
        given = {v.id for target, v in self.assignments if _is_named(target, name) and isinstance(v, ast.Name)}
        found = [
            scope.functions[other]
            for other in given
            if (scope := self.binding(other)) is not None and other in scope.functions
        ]
        return found[0] if len(found) == 1 else None

    def binding(self, name: str) -> Scope | None:
        """The scope that binds a name read here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None


class Program:
    """The scopes of one file, and its names that are torch's."""

    def __init__(self, tree: ast.Module, references: Iterable[Reference]) -> None:
        self.module = Scope(tree)
        self.scopes: list[Scope] = [self.module]
        self.classes: list[ClassScope] = []
        self._torch = {id(r.node): r.name for r in references if not isinstance(r.node, ast.alias)}
        self._imported: dict[str, set[str]] = {}
        self._collect(tree.body, self.module, None)
        for cls in self.classes:
            scope_bases = [base.id for base in cls.node.bases if isinstance(base, ast.Name)]
            named = {other.node.name: other for other in self.classes}
            cls.bases = [named[name] for name in scope_bases if name in named and named[name] is not cls]
            cls.base_names = tuple(filter(None, (self.name(base) for base in cls.node.bases)))

    def name(self, node: ast.expr) -> str | None:
        """The qualified name of an imported object, torch's where several imports agree on its last part."""
        found = self._torch.get(id(node))
        if found is not None:
            return found
        parts: list[str] = []
        base = node
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            return None
        rest = "".join(f".{part}" for part in reversed(parts))
        names = {name + rest for name in self._imported.get(base.id, ())}
        torch = {name for name in names if name.startswith("torch.")}
        if torch and len({name.rpartition(".")[2] for name in torch}) == 1:
            return min(torch)
        return min(names) if len(names) == 1 else None

    def place(self, node: ast.expr, scope: Scope) -> Place | None:
        """The place that an expression denotes, None for one that makes something new."""
        if isinstance(node, ast.Name):
            owner = scope.binding(node.id)
            if owner is None:
                return None
            if owner.owner is not None and node.id == owner.receiver:
                return ("self", id(owner.owner.root))
            return (id(owner), node.id)
        if isinstance(node, ast.Attribute):
            base = self.place(node.value, scope)
            return (*base, "." + node.attr) if base is not None else None
        if isinstance(node, ast.Subscript):
            base = self.place(node.value, scope)
            key = repr(node.slice.value) if isinstance(node.slice, ast.Constant) else "*"
            return (*base, f"[{key}]") if base is not None else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            return self.attribute_place(node, scope)
        return None

    def attribute_place(self, call: ast.Call, scope: Scope) -> Place | None:
        """The place that ``getattr(x, name)`` reads or ``setattr(x, name, value)`` writes: ``x.s*`` for f"s{i}"."""
        if len(call.args) < 2:
            return None
        base, template = self.place(call.args[0], scope), template_of(call.args[1])
        return (*base, "." + template) if base is not None and template is not None else None

    def callee(self, call: ast.Call, scope: Scope) -> Scope | None:
        """The function of this file that a call runs, where its name says so."""
        func = call.func
        if isinstance(func, ast.Name):
            owner = scope.binding(func.id)
            return owner.function(func.id) if owner is not None else None
        if not isinstance(func, ast.Attribute):
            return None
        if isinstance(func.value, ast.Call) and isinstance(func.value.func, ast.Name) and func.value.func.id == "super":
            cls = self.class_around(scope)
            return cls.method(func.attr, skip_own=True) if cls is not None else None
        if isinstance(func.value, ast.Name):
            owner = scope.binding(func.value.id)
            if owner is not None and owner.owner is not None and func.value.id == owner.receiver:
                return owner.owner.method(func.attr)
        return None

    def class_around(self, scope: Scope) -> ClassScope | None:
        current: Scope | None = scope
        while current is not None and current.owner is None:
            current = current.parent
        return current.owner if current is not None else None

    # ---- reading the file ---------------------------------------------------------------------------------------

    def _collect(self, body: list[ast.stmt], scope: Scope, owner: ClassScope | None) -> None:
        stack: list[ast.AST] = list(reversed(body))
        own = {id(statement) for statement in body}
        while stack:
            node = stack.pop()
            if isinstance(node, _DEFINITIONS):
                self._define(node, scope, owner if id(node) in own else None)
                stack.extend(node.decorator_list)
                continue
            if node.__class__ in _NOTED:
                self._note(node, scope)
            stack += reversed(children(node))

    def _define(self, node: ast.stmt, scope: Scope, owner: ClassScope | None) -> None:
        if isinstance(node, ast.ClassDef):
            scope.names.add(node.name)
            cls = ClassScope(node)
            self.classes.append(cls)
            scope.classes[node.name] = cls
            body = Scope(ast.Module([], []), scope)
            self._collect(node.body, body, cls)
            cls.fields = [(t.id, annotation) for t, annotation in body.annotations if isinstance(t, ast.Name)]
            return
        assert isinstance(node, FunctionNode)
        inner = Scope(node, scope if owner is None else scope.parent, owner)
        self.scopes.append(inner)
        if owner is not None:
            owner.methods.setdefault(node.name, inner)
        else:
            scope.names.add(node.name)
            scope.functions[node.name] = inner
        spec = node.args
        for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            inner.names.add(argument.arg)
            if argument.annotation is not None:
                inner.annotations.append((ast.Name(argument.arg, ast.Load()), argument.annotation))
        inner.names.update(a.arg for a in (spec.vararg, spec.kwarg) if a is not None)
        self._collect(node.body, inner, None)

    def _note(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                scope.names.add(node.id)
        elif isinstance(node, ast.Call):
            scope.calls.append(node)
        elif isinstance(node, ast.Assign):
            scope.assignments.extend((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            scope.annotations.append((node.target, node.annotation))
            if node.value is not None:
                scope.assignments.append((node.target, node.value))
        elif isinstance(node, ast.NamedExpr):
            scope.assignments.append((node.target, node.value))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            scope.assignments.append((node.optional_vars, node.context_expr))
        elif isinstance(node, ast.Return) and node.value is not None:
            scope.returned.append(node.value)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, scope)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                local = alias.asname or alias.name.partition(".")[0]
                name = alias.name if alias.asname else local
            else:
                local, name = alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
            self._imported.setdefault(local, set()).add(name)


def _is_named(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def own_children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of one statement's own expressions right below a node, without nested definitions and blocks."""
    for child in children(node):
        if not isinstance(child, _APART):
            yield child
