"""What a call of the project's own code leads to, and whether its arguments fit there.

A name counts that its module binds once, to a function, a class or an import of such from another file of the project;
a method that its own class defines once; what ``super().__init__`` is by bases that are all known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.names.folders import LIBRARY_FOLDERS
from amplint.infer.syntax.bindings import import_statement, module_bindings
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.references import of_module, references
from amplint.project.imports import module_file, named_in, package_of
from amplint.project.mentions import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amplint.infer.syntax.bindings import Binding
    from amplint.source import Source

MAX_STEPS = 6
"""Imports, or bases, that are followed one after another."""
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC", "Generic", "typing.Generic", "Protocol"))
"""Bases that change nothing about how an object is made."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of a file that a call runs. ``bound``: its first argument is an object, or a class, that the call does
    not spell. ``method``: it is asked of the object, whose class may be another."""

    file: Source
    node: Function
    bound: bool
    method: bool = False

    def refuses(self, call: ast.Call) -> bool:
        """Whether the arguments of a call do not fit its parameters, whatever ``*`` and ``**`` stand for."""
        spec = self.node.args
        by_position = [argument.arg for argument in (*spec.posonlyargs, *spec.args)][self.bound :]
        given = sum(not isinstance(argument, ast.Starred) for argument in call.args)
        keywords = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
        named = {*by_position[max(len(spec.posonlyargs) - self.bound, 0) :], *(a.arg for a in spec.kwonlyargs)}
        if given > len(by_position) and spec.vararg is None:
            return True
        if spec.kwarg is None and not named.issuperset(keywords):
            return True
        filled = {*by_position[:given]}
        if (filled & named).intersection(keywords):
            return True
        if given < len(call.args) or len(keywords) < len(call.keywords):
            return False
        optional = by_position[max(len(by_position) - len(spec.defaults), 0) :] if spec.defaults else []
        required = {*by_position} - {*optional}
        required |= {a.arg for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is None}
        return not required <= {*filled, *keywords}


@dataclass(frozen=True, slots=True)
class _Defined:
    """A function or class at the top of a file."""

    file: Source
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Callees:
    """Finds what calls of one file lead to, in files below a folder, and what those of others do in these themselves.
    ``parse`` gives a file, None where it is not looked into."""

    def __init__(self, own: Source, root: Path, parse: Callable[[Path], Source | None]) -> None:
        self._own = own
        self._root = root
        self._parse = parse

    def of(self, file: Source, call: ast.Call, method: Function | None, cls: ast.ClassDef | None) -> Callee | None:
        """What a call in a method of a class, or elsewhere in a file, runs first; None where that is not known."""
        func = call.func
        if isinstance(func, ast.Attribute):
            if cls is not None and _is_super(func.value):
                return self._constructor(_Defined(file, cls), above=True) if func.attr == "__init__" else None
            if cls is not None and method is not None and _is_own(func.value, method):
                return callee_of(file, cls, func.attr)
        spelled = of_module(file.tree).get(id(func))
        if spelled is not None and spelled.endswith(".__init__"):
            return self._spelled_out(file, spelled.removesuffix(".__init__"))
        found_there = self._named(file, spelled) if spelled is not None else None
        if found_there is None:
            return None
        if isinstance(found_there.node, ast.ClassDef):
            return self._constructor(found_there)
        return Callee(found_there.file, found_there.node, bound=False) if not found_there.node.decorator_list else None

    def _named(self, file: Source, spelled: str, steps: int = 0) -> _Defined | None:
        """What a plain name, or one of a module that the file imports, is bound to; imports of a file outside of the
        folder, whose package is not known here, are not followed."""
        name, _, rest = spelled.partition(".")
        bindings = _bindings(file.tree).get(name, [])
        if len(bindings) != 1 or steps > MAX_STEPS:
            return None
        binding = bindings[0]
        if isinstance(binding, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return _Defined(file, binding) if not rest else None
        statement = import_statement(binding)
        if statement is None or not isinstance(binding, ast.alias) or (file is not self._own and not steps):
            return None
        if not file.path.is_relative_to(self._root):
            return None
        package = package_of(file.path, self._root)
        if isinstance(statement, ast.ImportFrom):
            module = named_in(statement, package)
            submodule = self._open(f"{module}.{binding.name}") if module and rest else None
            if submodule is not None:
                return self._named(submodule, rest, steps + 1)
            source = self._open(module) if module and not rest else None
            return self._named(source, binding.name, steps + 1) if source is not None else None
        if binding.asname is None or "." in rest or not rest:
            return None
        source = self._open(binding.name)
        return self._named(source, rest, steps + 1) if source is not None else None

    def _open(self, module: str) -> Source | None:
        """A module of the project: of libraries that lie in one folder, each is a project of its own."""
        own = package_of(self._own.path, self._root).partition(".")[0]
        if self._root.name in LIBRARY_FOLDERS and module.partition(".")[0] != own:
            return None
        path = module_file(self._root, module)
        return self._parse(path) if path is not None else None

    def _constructor(self, defined: _Defined, steps: int = 0, *, above: bool = False) -> Callee | None:
        """The constructor of a class, that of its bases alone if ``above``; None where something unknown may make its
        objects."""
        cls = defined.node
        if not isinstance(cls, ast.ClassDef) or cls.keywords or steps > MAX_STEPS:
            return None
        if (cls.decorator_list and not above) or _functions(cls).get("__new__"):
            return None
        bases = [self._base(defined.file, base, steps) for base in cls.bases]
        if any(base is None for base in bases):
            return None
        own = _functions(cls).get("__init__", []) if not above else []
        if own:
            simple = len(own) == 1 and not own[0].decorator_list
            return Callee(defined.file, own[0], bound=True) if simple and all(map(self._is_plain, bases)) else None
        known = [base for base in bases if isinstance(base, _Defined)]
        return self._constructor(known[0], steps + 1) if len(known) == len(bases) == 1 else None

    def _spelled_out(self, file: Source, spelled: str) -> Callee | None:
        """The constructor that ``Base.__init__(self)`` runs."""
        defined = self._named(file, spelled)
        if defined is None or not isinstance(defined.node, ast.ClassDef):
            return None
        own = _functions(defined.node).get("__init__", [])
        return Callee(defined.file, own[0], bound=False) if len(own) == 1 and not own[0].decorator_list else None

    def _is_plain(self, base: _Defined | str | None) -> bool:
        """Whether nothing in a base, or in what it derives from, makes objects otherwise than by a constructor."""
        if not isinstance(base, _Defined):
            return base is not None
        cls = base.node
        if not isinstance(cls, ast.ClassDef) or cls.keywords or _functions(cls).get("__new__"):
            return False
        return all(self._is_plain(self._base(base.file, above, 1)) for above in cls.bases)

    def _base(self, file: Source, node: ast.expr, steps: int) -> _Defined | str | None:
        """A base of the project, the name of one that makes objects as usual, or None."""
        spelled_out = node.value if isinstance(node, ast.Subscript) else node
        spelled = of_module(file.tree).get(id(spelled_out))
        found = self._named(file, spelled, steps + 1) if spelled is not None else None
        if found is not None:
            return found if isinstance(found.node, ast.ClassDef) else None
        torch = _torch_names(file.tree).get(id(spelled_out), "")
        if torch.startswith("torch.nn.") or torch == "torch.utils.data.Dataset":
            return torch
        written = ast.unparse(spelled_out)
        return written if written in _PLAIN_BASES else None


@once_for_each_node
def _bindings(tree: ast.Module) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}
    for name, binding in module_bindings(tree.body):
        found.setdefault(name, []).append(binding)
    for node in nodes_below(tree):
        if isinstance(node, ast.Global):
            for name in node.names:
                found.pop(name, None)
    return found


@once_for_each_node
def _torch_names(tree: ast.Module) -> dict[int, str]:
    return {id(reference.node): reference.name for reference in references(tree)}


@once_for_each_node
def _functions(cls: ast.ClassDef) -> dict[str, list[Function]]:
    """The functions that the body of a class defines, under tests too, and what else binds a name, by name."""
    found: dict[str, list[Function]] = {}
    for name, function in _defined_in(cls.body):
        found.setdefault(name, []).append(function)
    return found


def _defined_in(body: list[ast.stmt]) -> Iterator[tuple[str, Function]]:
    for statement in body:
        if isinstance(statement, Function):
            yield statement.name, statement
        elif isinstance(statement, (ast.If, ast.Try, ast.With)):
            for node in ast.walk(statement):
                if isinstance(node, Function):
                    yield from ((node.name, node), (node.name, node))


def callee_of(file: Source, cls: ast.ClassDef, name: str) -> Callee | None:
    """The method that a class has of a name, whose parameters no decorator changes; None where that is not known."""
    functions = _functions(cls).get(name, [])
    if len(functions) != 1 or name in _set_otherwise(cls):
        return None
    decorators = [getattr(decorator, "id", "") for decorator in functions[0].decorator_list]
    if decorators in ([], ["classmethod"]):
        return Callee(file, functions[0], bound=True, method=True)
    return Callee(file, functions[0], bound=False, method=True) if decorators == ["staticmethod"] else None


@once_for_each_node
def _set_otherwise(cls: ast.ClassDef) -> frozenset[str]:
    """The attributes that the functions of a class set, and the names that its body binds but by a function."""
    stored = (n for n in nodes_below(cls) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load))
    plain = (s for s in cls.body if isinstance(s, (ast.Assign, ast.AnnAssign)))
    bound = (t.id for s in plain for t in nodes_below(s) if isinstance(t, ast.Name) and not isinstance(t.ctx, ast.Load))
    return frozenset((*(node.attr for node in stored), *bound))


def _is_own(node: ast.expr, method: Function) -> bool:
    """Whether a name is that of the object, or the class, that a method is called on."""
    arguments = [*method.args.posonlyargs, *method.args.args][:1]
    decorators = [getattr(decorator, "id", "") for decorator in method.decorator_list]
    return (
        isinstance(node, ast.Name)
        and "staticmethod" not in decorators
        and [argument.arg for argument in arguments] == [node.id]
    )


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
