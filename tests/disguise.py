"""The same program in other words: what its author chose and Python and torch do not read is chosen anew.

Every node of a program carries a mark, which the program in other words carries too, so that findings of both can be
compared by what they lie on.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import torch

from amplint.source import Location, Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Change: TypeAlias = Callable[[ast.Module], ast.Module]
SAYS = "float16 because only cuda gpus support it, bf16 otherwise; see autocast, half precision, quantize, dtype, test"
"""What a comment or docstring may say and no rule may hear."""
LOADED = (
    *("mask", "half", "fp16", "eps", "scaler", "autocast", "quantize", "dtype", "attention", "freq", "precision"),
    *("dummy", "cos", "probs", "labels", "version", "cuda", "device", "model", "loss", "config", "test", "bf16"),
)
_BY_STRING = frozenset(
    ("register_buffer", "register_parameter", "add_module", "getattr", "setattr", "hasattr", "delattr")
)
_HOOKS = frozenset(
    (
        *("forward", "backward", "setup_context", "reset_parameters", "configure_optimizers", "training_step"),
        *("validation_step", "test_step", "predict_step", "compute_loss", "main", "amplint_example", "reproduce"),
    )
)
"""Functions that torch, a trainer or a person calls by these names."""


class Program(NamedTuple):
    """A tree whose nodes carry marks, and its text, whose nodes lie where those of the tree do."""

    tree: ast.Module
    text: str

    def marks(self) -> dict[Span, int]:
        """The mark of the outermost node at each place; one that nothing ends at stands for where it begins."""
        found: dict[Span, int] = {}
        for node, written in zip(_nodes(self.tree), _nodes(ast.parse(self.text)), strict=True):
            assert type(node) is type(written), (ast.dump(node), ast.dump(written))
            mark = getattr(node, "mark", None)
            if mark is None or not isinstance(written, ast.expr | ast.stmt | ast.alias | ast.arg | ast.keyword):
                continue
            start = Location(written.lineno, written.col_offset + 1)
            end = Location(written.end_lineno or 0, (written.end_col_offset or 0) + 1)
            found.setdefault(Span(start, end), mark)
            found.setdefault(Span(start, start), mark)
        return found


def original(text: str) -> Program:
    """A program as it is written."""
    return Program(_marked(text), text)


def disguised(text: str, *changes: Change, comment: str = "") -> Program:
    """A program after some changes, with a comment on every line where there is one."""
    tree = _marked(text)
    for change in changes:
        tree = change(tree)
    written = ast.unparse(tree)
    if comment:
        written = "\n".join(f"{line}  # {comment}" for line in written.splitlines())
    return Program(tree, written)


def _marked(text: str) -> ast.Module:
    tree = ast.parse(text)
    for mark, node in enumerate(_nodes(tree)):
        node.mark = mark  # type: ignore[attr-defined]
    return tree


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """All nodes that lie somewhere, from the outermost on."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif name != "ctx" and isinstance(value, ast.AST):
                nodes.append(value)
    return nodes


def silent(tree: ast.Module) -> ast.Module:
    """Without docstrings."""
    for node in _documented(tree):
        if ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return tree


def talkative(tree: ast.Module) -> ast.Module:
    """With a docstring in every function and class, which may mislead."""
    tree = silent(tree)
    for node in _documented(tree):
        if not isinstance(node, ast.Module):
            node.body.insert(0, ast.Expr(ast.Constant(SAYS)))
    return tree


def _documented(tree: ast.Module) -> list[ast.Module | ast.ClassDef | FunctionNode]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | FunctionNode)]


def neutral(tree: ast.Module) -> ast.Module:
    """With names that say nothing for all that the file names itself: ``v7``."""
    return _renamed(tree, ("v",))


def loaded(tree: ast.Module) -> ast.Module:
    """With names for all that the file names itself that may mislead: ``half_7``."""
    return _renamed(tree, LOADED)


def _renamed(tree: ast.Module, words: Sequence[str]) -> ast.Module:
    names = _Names(tree)
    new: dict[str, str] = {}
    for number, name in enumerate(sorted(names.variables | names.attributes)):
        private = "_" * (len(name) - len(name.lstrip("_")))
        new[name] = f"{private}{words[number % len(words)]}_{number}"
    renamed: ast.Module = _Renaming(names, new).visit(tree)
    return renamed


def moved(tree: ast.Module) -> ast.Module:
    """With the methods of each class and the definitions of the file the other way round, where they may move."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            _turn(node.body, (ast.FunctionDef, ast.AsyncFunctionDef))
    _turn(tree.body, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return tree


def _turn(body: list[ast.stmt], kinds: tuple[type[ast.stmt], ...]) -> None:
    """Put definitions the other way round where nothing is evaluated meanwhile that names one of them."""
    places = [number for number, item in enumerate(body) if isinstance(item, kinds)]
    definitions = [body[number] for number in places]
    names = {str(getattr(item, "name", "")) for item in definitions}
    if len(names) < 2 or len(names) < len(definitions):
        return
    between = [part for item in definitions for part in _evaluated(item)]
    between += [item for item in body[: places[-1]] if item not in definitions]
    if not names & {node.id for part in between for node in ast.walk(part) if isinstance(node, ast.Name)}:
        for place, item in zip(places, reversed(definitions), strict=True):
            body[place] = item


def _evaluated(node: ast.stmt) -> Iterator[ast.AST]:
    """What runs of a definition before anything calls it."""
    if isinstance(node, FunctionNode):
        yield from (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None))
        yield from (a for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation is not None)
        yield from [node.returns] if node.returns is not None else []
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
        for item in node.body:
            yield from _evaluated(item)
    else:
        yield node


def aliased(tree: ast.Module) -> ast.Module:
    """``import torch`` becomes ``import torch as th``."""
    changed: ast.Module = _Aliased().visit(tree)
    return changed


def under_other_names(tree: ast.Module) -> ast.Module:
    """Every import binds a name that says nothing: ``import numpy as n_0``, ``from . import _C as n_1``."""
    names = _Names(tree)
    nodes = list(ast.walk(tree))
    taken = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    taken |= {str(getattr(n, "name", "")) for n in nodes if isinstance(n, ast.ClassDef | FunctionNode)}
    taken |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {word for n in nodes for word in names.quoted(n)}
    new: dict[str, str] = {}
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            bound = alias.asname or alias.name
            if getattr(node, "module", "") != "__future__" and bound not in taken and "." not in bound and bound != "*":
                alias.asname = new.setdefault(bound, f"n_{len(new)}")
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    return tree


def by_name(tree: ast.Module) -> ast.Module:
    """``torch.nn.functional.pad`` becomes ``pad``, which is imported by name, as ``pad_`` where ``pad`` is taken."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(dir(builtins))
    taken |= {getattr(node, "name", "") or getattr(node, "arg", "") or "" for node in ast.walk(tree)}
    spelling = _ByName(taken)
    changed: ast.Module = spelling.visit(tree)
    imports: list[ast.stmt] = [
        ast.ImportFrom(module, [ast.alias(name, f"{name}_" if name in taken else None)], 0)
        for module, name in sorted(spelling.imported)
    ]
    future = [n for n in changed.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    first = changed.body[:1] if ast.get_docstring(changed, clean=False) is not None else []
    rest = [n for n in changed.body if n not in future and n not in first]
    changed.body = [*first, *future, *imports, *rest]
    return changed


class _Aliased(ast.NodeTransformer):
    def visit_alias(self, node: ast.alias) -> ast.alias:
        if node.name == "torch" and node.asname is None:
            node.asname = "th"
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == "torch":
            node.id = "th"
        return node


class _ByName(ast.NodeTransformer):
    def __init__(self, taken: set[str]) -> None:
        self.imported: set[tuple[str, str]] = set()
        self._taken = taken

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        parts = ast.unparse(node).split(".")
        found = _module_of(parts) if parts[0] == "torch" and isinstance(node.ctx, ast.Load) else None
        if found is None:
            return self.generic_visit(node)
        module, (name, *rest) = found
        if any(other != module for other, known in self.imported if known == name):
            return node
        if rest:
            return self.generic_visit(node)
        self.imported.add((module, name))
        new = ast.Name(f"{name}_" if name in self._taken else name, node.ctx)
        new.mark = node.mark  # type: ignore[attr-defined]
        return new


def _module_of(parts: list[str]) -> tuple[str, list[str]] | None:
    """The longest module that a path begins with, and the rest of it."""
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        return (".".join(parts[:end]), parts[end:]) if hasattr(module, parts[end]) else None
    return None


class _Names:
    """The ``variables`` and ``attributes`` of a file that may have other names, together with all that reads them.

    Left alone are ``self`` and ``cls``, what imports bind, hooks that others call, what an imported base class may
    read, names in strings, and names that torch or Python have too where it is not plain that the file's own is meant.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        nodes = list(ast.walk(tree))
        self.classes = {n.name: n for n in nodes if isinstance(n, ast.ClassDef)}
        self.functions = {n.name for n in nodes if isinstance(n, FunctionNode)}
        members = {name for node in self.classes.values() for name in _members(node)}
        self.fixed = {name for node in self.classes.values() for name in self._read_by_bases(node)}
        self.receivers = {
            (n.args.posonlyargs + n.args.args)[0].arg
            for c in self.classes.values()
            for n in c.body
            if isinstance(n, FunctionNode) and n.args.posonlyargs + n.args.args
        }
        stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and self._is_own(n) and not _is_read(n)}
        methods = {n.name for c in self.classes.values() for n in c.body if isinstance(n, FunctionNode)}
        bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.arg for n in nodes if isinstance(n, ast.arg)} | set(self.classes)
        bound |= {n.name for n in nodes if isinstance(n, FunctionNode)} - methods
        bound |= {str(getattr(n, "name", None)) for n in nodes if isinstance(n, ast.ExceptHandler | ast.MatchAs)}
        parameters = {n.arg for n in nodes if isinstance(n, ast.arg)} | members
        called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        keywords = {
            keyword.arg
            for n in nodes
            if isinstance(n, ast.Call) and not self.is_own_call(n)
            for keyword in n.keywords
            if keyword.arg is not None
        }
        quoted = {word for n in nodes for word in self.quoted(n)}
        never = self.imported | (keywords & parameters) | quoted | self.fixed | _HOOKS | {"None", "_", "self", "cls"}
        self.variables = {
            name
            for name in bound - never
            if not name.startswith(("__", "test_")) and not (name in dir(builtins) and name in called)
        }
        others = {n.attr for n in nodes if isinstance(n, ast.Attribute) and not self._is_own(n)}
        self.attributes = {
            name
            for name in (stored | members) - never
            if not name.startswith(("__", "test_")) and not (name in others and name in known_attributes())
        }
        both = members - methods
        self.variables -= both - self.attributes
        self.attributes -= both - self.variables

    def is_own_call(self, node: ast.Call) -> bool:
        """Whether a function or class of the file is called, so that keywords are names of the file."""
        func = node.func
        if isinstance(func, ast.Name):
            return func.id in self.functions or (
                func.id in self.classes and not self._is_foreign(self.classes[func.id])
            )
        return isinstance(func, ast.Attribute) and self._is_own(func) and func.attr in self.functions

    def _is_own(self, node: ast.Attribute) -> bool:
        return isinstance(node.value, ast.Name) and (node.value.id in self.receivers or node.value.id in self.classes)

    def _is_foreign(self, node: ast.ClassDef) -> bool:
        """Whether a class gets its constructor from outside of the file."""
        return any(not (isinstance(b, ast.Name) and b.id in self.classes) for b in node.bases) and not any(
            isinstance(item, FunctionNode) and item.name == "__init__" for item in node.body
        )

    def _read_by_bases(self, node: ast.ClassDef) -> set[str]:
        """The members of a class that a base from outside of the file may read."""
        foreign = [b for b in node.bases if not (isinstance(b, ast.Name) and b.id in self.classes)]
        members = set(_members(node))
        if all("Module" in ast.unparse(b) or "Function" in ast.unparse(b) for b in foreign):
            return members & known_attributes("bases")
        return members

    def quoted(self, node: ast.AST) -> Iterable[str]:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return ()
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Expr) or names_attribute(node, parent):
            return ()
        return re.findall(r"\w+", node.value)


def names_attribute(node: ast.Constant, parent: ast.AST | None) -> bool:
    """Whether a string is the name of an attribute: ``register_buffer("mask", ...)``."""
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    func = parent.func
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in _BY_STRING


def _is_read(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, FunctionNode):
            yield item.name
        elif isinstance(item, ast.Assign):
            yield from (n.id for target in item.targets for n in ast.walk(target) if isinstance(n, ast.Name))
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


_MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.amp", "torch.optim", "torch.utils.data", "torch.autograd"),
    *("torch.distributed", "torch.cuda", "torch.linalg", "torch.fft", "torch.backends"),
)


@cache
def known_attributes(which: str = "all") -> frozenset[str]:
    """The attributes of torch's modules and classes, and of Python's own types."""
    found = {*dir(torch.nn.Module), *dir(torch.autograd.Function), *dir(torch.nn.Module())}
    if which == "bases":
        return frozenset(found)
    for module in map(importlib.import_module, _MODULES):
        found |= set(dir(module))
        for thing in vars(module).values():
            if issubclass(type(thing), type):
                found |= {*dir(thing), *getattr(thing, "__constants__", ()), *getattr(thing, "__annotations__", ())}
    for thing in (str, bytes, list, dict, set, tuple, int, float, slice, property):
        found |= set(dir(thing))
    return frozenset(found)


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: _Names, new: dict[str, str]) -> None:
        self._names, self._new = names, new

    def _variable(self, name: str) -> str:
        return self._new[name] if name in self._names.variables else name

    def _attribute(self, name: str) -> str:
        return self._new[name] if name in self._names.attributes else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._variable(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._variable(node.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._attribute(node.attr)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for item in node.body:
            if isinstance(item, FunctionNode):
                item.name = self._attribute(item.name)
                item.of_class = True  # type: ignore[union-attr]
        node.name = self._variable(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not hasattr(node, "of_class"):
            node.name = self._variable(node.name)
        return self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self._variable(node.name) if node.name is not None else None
        return self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        node.name = self._variable(node.name) if node.name is not None else None
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._variable(name) for name in node.names]
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [self._variable(name) for name in node.names]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self._names.is_own_call(node):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    keyword.arg = self._new.get(keyword.arg, keyword.arg)
        for argument in node.args:
            named = isinstance(argument, ast.Constant) and names_attribute(argument, node)
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and named:
                argument.value = self._attribute(argument.value)
        return self.generic_visit(node)
