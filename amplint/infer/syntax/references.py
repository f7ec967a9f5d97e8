"""Which names of a file are torch objects: every dotted name that the file's own imports resolve to ``torch.…``.

One walk collects each scope's bindings and the dotted names that are read in it; Python's scoping then decides what
each name means. A name that one scope binds to different things (a ``try`` import with a fallback, a reassignment)
means nothing certain, and gives no reference.
"""

from __future__ import annotations

import ast
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import children, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ImportStatement = ast.Import | ast.ImportFrom
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_TORCH, _COMPANIONS = "torch", frozenset(("torchaudio", "torchvision"))
_FOLLOWED = _COMPANIONS | {_TORCH}
"""The packages whose names are told from others."""
_OTHER, _NONE = "", "None"
"""What a name is bound to when that is not a torch object."""

_LEAVES = frozenset((ast.Constant, ast.Pass, ast.Break, ast.Continue))
"""Nodes with nothing to find below them."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name or dotted name in the file that imports resolve to a torch object.

    ``node`` is the whole dotted expression (``ast.Name``, ``ast.Attribute``) or the ``ast.alias`` of an import;
    ``name`` is fully qualified as imported, for example ``torch.cuda.amp.autocast``. ``call`` is the call whose callee
    it is; ``decorates`` the function or class that it decorates (called or bare).
    """

    node: ast.expr | ast.alias
    name: str
    call: ast.Call | None = None
    decorates: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None = None
    statement: ast.Import | ast.ImportFrom | None = None


@dataclass(slots=True)
class _Scope:
    """One scope: what its names are bound to, and the imports that bind them."""

    parent: _Scope | None
    kind: str
    targets: dict[str, set[str]] = field(default_factory=dict)
    imports: list[tuple[str, ast.alias, str, ImportStatement]] = field(default_factory=list)
    elsewhere: dict[str, _Scope] = field(default_factory=dict)
    """Names declared ``global`` or ``nonlocal``, and the scope that binds them."""

    def bind(self, name: str, target: str = _OTHER) -> None:
        self.elsewhere.get(name, self).targets.setdefault(name, set()).add(target)

    def owner(self, name: str) -> _Scope | None:
        """The scope that binds a name read here, None where none does."""
        scope: _Scope | None = self
        while scope is not None:
            owner = scope.elsewhere.get(name, scope)
            if name in owner.targets and (scope is self or scope.kind != "class"):
                return owner
            scope = scope.parent
        return None

    def resolve(self, name: str) -> str:
        """The one torch object that a name read here is bound to, else :data:`_OTHER`."""
        owner = self.owner(name)
        return _decide(owner.targets[name]) if owner is not None else _OTHER

    def choices(self, name: str) -> list[tuple[ast.alias, str]]:
        """The imports that bind a name read here to several torch objects, in source order; none where anything else
        binds it."""
        owner = self.owner(name)
        if owner is None:
            return []
        targets = owner.targets[name]
        if any(_root(target) in _COMPANIONS for target in targets):
            return []
        imports = [(alias, _bound(alias, full)) for local, alias, full, _ in owner.imports if local == name]
        imports.sort(key=lambda choice: (choice[0].lineno, choice[0].col_offset))
        return imports if len(targets) > 1 and targets == {target for _, target in imports} else []

    def own(self, name: str) -> str:
        """The one torch object that this scope binds a name to, else :data:`_OTHER`."""
        return _decide(self.elsewhere.get(name, self).targets.get(name, set()))


def _decide(targets: set[str]) -> str:
    """``torch = None`` where torch is missing does not count: nothing that uses torch can run then."""
    if targets == {"torch", _NONE}:
        return "torch"
    target = next(iter(targets)) if len(targets) == 1 else _OTHER
    return _OTHER if target == _NONE else target


@dataclass(slots=True)
class _Use:
    """A dotted name as read: its outermost node, its first name, the rest, and the scope it is read in."""

    node: ast.expr
    root: str
    rest: str
    scope: _Scope
    call: ast.Call | None
    decorates: Definition | None


@once_for_each_node
def references(tree: ast.Module) -> tuple[Reference, ...]:
    """Every name or dotted name in the file that its imports resolve to a torch object, in source order."""
    if not _walked(tree).torch_imported:
        return ()
    return tuple(found for found in _resolved(tree) if _root(found.name) == _TORCH)


@once_for_each_node
def of_companions(tree: ast.Module) -> tuple[Reference, ...]:
    """The same of what is torchvision's or torchaudio's."""
    return tuple(found for found in _resolved(tree) if _root(found.name) in _COMPANIONS)


@lru_cache(maxsize=2)
def _resolved(tree: ast.Module) -> tuple[Reference, ...]:
    walk = _walked(tree)
    found: list[Reference] = []
    for use in walk.uses:
        target = use.scope.resolve(use.root)
        if target:
            found.append(Reference(use.node, target + use.rest, use.call, use.decorates))
    for scope in walk.importing:
        for local, alias, name, statement in scope.imports:
            if scope.own(local) == _bound(alias, name):
                found.append(Reference(alias, name, statement=statement))
    found.sort(key=lambda reference: (reference.node.lineno, reference.node.col_offset))
    return tuple(found)


@lru_cache(maxsize=2)
def ambiguous_calls(tree: ast.Module) -> tuple[tuple[ast.Call, tuple[tuple[ast.alias, str], ...]], ...]:
    """The calls of what several imports bind to different torch objects, as a ``try`` with a fallback does: each with
    the imports and the qualified names that the callee then has."""
    walk = _walked(tree)
    found = []
    for use in walk.uses if walk.torch_imported else ():
        choices = use.scope.choices(use.root) if use.call is not None else []
        if use.call is not None and choices:
            found.append((use.call, tuple((alias, target + use.rest) for alias, target in choices)))
    return tuple(found)


@once_for_each_node
def unbound(tree: ast.Module) -> list[ast.Name]:
    """The names that are read where no scope binds them; builtins are among these."""
    found = []
    for use in _walked(tree).uses:
        if use.scope.owner(use.root) is None:
            root = use.node
            while isinstance(root, ast.Attribute):
                root = root.value
            assert isinstance(root, ast.Name)
            found.append(root)
    return found


@once_for_each_node
def of_module(tree: ast.Module) -> dict[int, str]:
    """By ``id`` of an outermost dotted name: what it spells, where its first name is one of the module's scope."""
    walk = _walked(tree)
    return {id(use.node): use.root + use.rest for use in walk.uses if use.scope.owner(use.root) is walk.module}


@lru_cache(maxsize=2)
def _walked(tree: ast.Module) -> _Walk:
    walk = _Walk()
    walk.run(tree)
    return walk


class _Walk:
    """One pass over a module with an explicit stack of (node, scope)."""

    def __init__(self) -> None:
        self.uses: list[_Use] = []
        self.importing: list[_Scope] = []
        self.torch_imported = False
        self._stack: list[tuple[ast.AST, _Scope]] = []
        self.module = _Scope(None, "module")

    def run(self, tree: ast.Module) -> None:
        self._push(tree.body, self.module)
        stack, handlers = self._stack, self._handlers()
        while stack:
            node, scope = stack.pop()
            handler = handlers.get(node.__class__)
            if handler is not None:
                handler(node, scope)
                continue
            stack += [(child, scope) for child in children(node) if child.__class__ not in _LEAVES]

    def _handlers(self) -> dict[type, Callable[[Any, _Scope], None]]:
        """What to do at a node by its class; any other is only walked through."""
        return {
            ast.Name: self._dotted,
            ast.Attribute: self._dotted,
            ast.Call: self._call,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.FunctionDef: self._definition,
            ast.AsyncFunctionDef: self._definition,
            ast.ClassDef: self._definition,
            ast.Lambda: self._lambda,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.Global: self._declare,
            ast.Nonlocal: self._declare,
            ast.NamedExpr: self._named,
            ast.Assign: self._assign,
            ast.ExceptHandler: self._capture,
            ast.MatchAs: self._capture,
            ast.MatchStar: self._capture,
            ast.MatchMapping: self._capture,
        }

    def _push(self, nodes: Iterable[ast.AST], scope: _Scope) -> None:
        self._stack.extend([(node, scope) for node in nodes])

    def _dotted(
        self, node: ast.expr, scope: _Scope, call: ast.Call | None = None, decorates: Definition | None = None
    ) -> None:
        """Note a dotted name; where the chain starts at something else, go on into that."""
        parts: list[str] = []
        base = node
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            self._stack.append((base, scope))
            return
        if base is node and not isinstance(base.ctx, ast.Load):
            scope.bind(base.id)
            return
        rest = "." + ".".join(reversed(parts)) if parts else ""
        self.uses.append(_Use(node, base.id, rest, scope, call, decorates))

    def _call(self, node: ast.Call, scope: _Scope, decorates: Definition | None = None) -> None:
        self._push([keyword.value for keyword in node.keywords], scope)
        self._push(node.args, scope)
        if isinstance(node.func, ast.Name | ast.Attribute):
            self._dotted(node.func, scope, node, decorates)
        else:
            self._stack.append((node.func, scope))

    def _import(self, node: ImportStatement, scope: _Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                local, name = alias.asname or alias.name.partition(".")[0], alias.name
            else:
                local, name = alias.asname or alias.name, f"{node.module}.{alias.name}" if not node.level else _OTHER
            root = _root(name)
            if root not in _FOLLOWED:
                name = _OTHER
            if alias.name == "*":
                continue
            scope.bind(local, _bound(alias, name) if name else _OTHER)
            if name:
                self.torch_imported = self.torch_imported or root == _TORCH
                if not scope.imports:
                    self.importing.append(scope)
                scope.imports.append((local, alias, name, node))

    def _definition(self, node: Definition, scope: _Scope) -> None:
        scope.bind(node.name)
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                self._call(decorator, scope, node)
            elif isinstance(decorator, ast.Name | ast.Attribute):
                self._dotted(decorator, scope, decorates=node)
            else:
                self._stack.append((decorator, scope))
        generic = _Scope(scope, "function") if getattr(node, "type_params", None) else scope
        for parameter in getattr(node, "type_params", ()):
            generic.bind(parameter.name)
            self._push(ast.iter_child_nodes(parameter), generic)
        if isinstance(node, ast.ClassDef):
            self._push(node.bases, generic)
            self._push([keyword.value for keyword in node.keywords], generic)
            self._push(node.body, _Scope(generic, "class"))
            return
        inner = _Scope(generic, "function")
        self._push(_defaults(node.args), scope)
        self._push([arg.annotation for arg in _arguments(node.args) if arg.annotation is not None], generic)
        if node.returns is not None:
            self._push([node.returns], generic)
        self._parameters(node.args, inner)
        self._push(node.body, inner)

    def _parameters(self, arguments: ast.arguments, scope: _Scope) -> None:
        for argument in _arguments(arguments):
            scope.bind(argument.arg)

    def _comprehension(self, node: ast.AST, scope: _Scope) -> None:
        inner = _Scope(scope, "comprehension")
        first = True
        for name in node._fields:
            value = getattr(node, name)
            for generator in value if name == "generators" else ():
                self._push([generator.target], inner)
                self._push([generator.iter], scope if first else inner)
                self._push(generator.ifs, inner)
                first = False
            if isinstance(value, ast.expr):
                self._push([value], inner)

    def _declare(self, node: ast.Global | ast.Nonlocal, scope: _Scope) -> None:
        for name in node.names:
            owner: _Scope | None = self.module
            if isinstance(node, ast.Nonlocal):
                owner = scope.parent
                while owner is not None and (owner.kind == "class" or name not in owner.targets):
                    owner = owner.parent
            if owner is not None and owner is not scope:
                scope.elsewhere[name] = owner
                for target in scope.targets.pop(name, set()):
                    scope.bind(name, target)

    def _lambda(self, node: ast.Lambda, scope: _Scope) -> None:
        self._push(_defaults(node.args), scope)
        inner = _Scope(scope, "function")
        self._parameters(node.args, inner)
        self._push([node.body], inner)

    def _named(self, node: ast.NamedExpr, scope: _Scope) -> None:
        _function_scope(scope).bind(node.target.id)
        self._push([node.value], scope)

    def _assign(self, node: ast.Assign, scope: _Scope) -> None:
        self._push([node.value], scope)
        for target in node.targets:
            if isinstance(target, ast.Name) and _is_none(node.value):
                scope.bind(target.id, _NONE)
            else:
                self._push([target], scope)

    def _capture(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping, scope: _Scope) -> None:
        """Bindings that are plain strings of a node: ``except … as e``, captures of ``match``."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            scope.bind(name)
        self._push(ast.iter_child_nodes(node), scope)


def _root(name: str) -> str:
    return name.partition(".")[0]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _bound(alias: ast.alias, name: str) -> str:
    """What an import binds its local name to: ``import torch.cuda.amp`` binds ``torch``."""
    if alias.asname is None and "." in alias.name:
        return alias.name.partition(".")[0]
    return name


def _function_scope(scope: _Scope) -> _Scope:
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    stars = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]
