"""What stands around a node: the function it is in, and the tests that decide whether it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from amplint.infer.lattice.dtypes import BITS
from amplint.infer.names.annotations import last_name, unquoted
from amplint.infer.syntax.bodies import children, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.control import goes_on
from amplint.infer.syntax.packages import package_of
from amplint.infer.syntax.references import references

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Predicate = Callable[[ast.expr], bool]
Imported = tuple[ast.alias, ast.Import | ast.ImportFrom]
_VERSIONS = frozenset(("torch.__version__", "torch.version", "torch.torch_version.TorchVersion"))
_ABOUT_A_RELEASE = re.compile(r"torch|\d+\.\d+(\.\d+)?(\.dev\d*|[abr]c?\d+)?")
"""A release as it is written in a string, or the package that a function is asked about."""
_MAX_STEPS = 3
_OF_DTYPE = ("dtype", "torch_dtype")
_DTYPES = frozenset(
    (*BITS, "half", "float", "double", "get_default_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "cfloat")
)
"""What is a dtype in torch, or gives one."""


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Imported]]:
    """The names that an import binds, each with the part of the import that does."""
    return ((alias.asname or alias.name.partition(".")[0], (alias, node)) for alias in node.names)


class Surroundings:
    """The parents of all nodes of one file."""

    @staticmethod
    @lru_cache(maxsize=1)
    def of(tree: ast.Module) -> Surroundings:
        """Those of a file, made once for all rules that ask while it is checked."""
        return Surroundings(tree)

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents: dict[int, ast.AST] = {}
        self._imported: dict[str, Imported] = {}
        self._names: dict[int, str] | None = None
        self._of_module: dict[str, list[ast.expr]] | None = None
        self._dtypes: dict[int, set[str]] = {}
        """By function: the variables that hold dtypes."""
        self._settling: dict[int, dict[int, tuple[list[ast.Assert | ast.If], int]]] = {}
        """By the node around blocks and the statement in one: the statements there that settle a test, and how many of
        them stand before it."""
        pending: list[ast.AST] = [tree]
        while pending:
            node = pending.pop()
            inside = children(node)
            for child in inside:
                self._parents[id(child)] = node
            pending += inside
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._parents.update({id(alias): node for alias in node.names})
                self._imported.update(_imports(node))

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(id(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent outwards."""
        parent = self.parent(node)
        while parent is not None:
            yield parent
            parent = self.parent(parent)

    def is_within(self, node: ast.AST, other: ast.AST) -> bool:
        """Whether a node is a part of another, whatever lies between."""
        return any(ancestor is other for ancestor in self.ancestors(node))

    def subject(self, call: ast.Call) -> ast.expr | None:
        """``x`` of ``x.sum(-1)`` and of ``torch.sum(x, -1)``, under whatever name torch was imported."""
        if isinstance(call.func, ast.Attribute) and not self.is_torch(call.func.value):
            return call.func.value
        return call.args[0] if call.args else None

    def is_torch(self, node: ast.expr) -> bool:
        """Whether an expression is torch or a module of it: ``torch``, ``F``, ``torch.nn.functional``."""
        imported = self.imported(node)
        return imported is not None and package_of(*imported) == "torch"

    def is_imported(self, node: ast.expr) -> bool:
        """Whether an expression is a module, or another thing that an import binds."""
        return self.imported(node) is not None

    def imported(self, node: ast.expr) -> Imported | None:
        """The import that brings an expression or the module that it is taken from, if one does."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._imported.get(node.id) if isinstance(node, ast.Name) else None

    def torch_name(self, node: ast.AST) -> str:
        """The name in torch of what an expression names, however it was imported; empty where it is of no torch."""
        if self._names is None:
            self._names = {id(reference.node): reference.name for reference in references(self._tree)}
        return self._names.get(id(node), "")

    def called(self, call: ast.Call) -> str:
        """The last part of the name of what is called, which is torch's where it was imported under another."""
        name = self.torch_name(call.func)
        return name.rpartition(".")[2] if name else getattr(call.func, "attr", getattr(call.func, "id", ""))

    def uses_of(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Where the file has a name, as it is or of an object."""
        named = nodes_of_kind(self._tree, ast.Attribute, ast.Name)
        return [node for node in named if (node.attr if isinstance(node, ast.Attribute) else node.id) == name]

    def is_dtype(self, node: ast.expr) -> bool:
        """Whether an expression is a dtype: torch's, a tensor's, or a variable that holds one or is used as one."""
        if isinstance(node, ast.Attribute) and node.attr in _OF_DTYPE:
            return True
        if not isinstance(node, ast.Name):
            of = node.func if isinstance(node, ast.Call) else node
            return self.torch_name(of).rpartition(".")[2] in _DTYPES
        if self.torch_name(node):
            return self.torch_name(node).rpartition(".")[2] in _DTYPES
        function = self.function(node)
        return function is not None and node.id in self._held_dtypes(function)

    def _held_dtypes(self, function: FunctionNode) -> set[str]:
        """The variables of a function that hold dtypes, by annotation, by what they are given or by what takes them."""
        found = self._dtypes.get(id(function))
        if found is None:
            found = self._dtypes[id(function)] = set()
            found.update(a.arg for a in nodes_of_kind(function.args, ast.arg) if _is_annotated_dtype(a))
            for node in nodes_of_kind(function, ast.Assign, ast.keyword, ast.Compare):
                if isinstance(node, ast.Assign) and self.is_dtype(node.value):
                    found.update(target.id for target in node.targets if isinstance(target, ast.Name))
                elif isinstance(node, ast.keyword) and node.arg == "dtype" and isinstance(node.value, ast.Name):
                    found.add(node.value.id)
                elif isinstance(node, ast.Compare) and any(map(self.is_dtype, node.comparators)):
                    found.update([node.left.id] if isinstance(node.left, ast.Name) else [])
        return found

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function whose body holds a node."""
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, FunctionNode) and child in ancestor.body:
                return ancestor
            child = ancestor
        return None

    def block(self, node: ast.AST) -> int:
        """Identifies the list of statements that a node stands in."""
        child = node
        for ancestor in self.ancestors(node):
            for statements in _blocks(ancestor):
                if any(statement is child for statement in statements):
                    return id(statements)
            child = ancestor
        return 0

    def in_annotation(self, node: ast.AST) -> bool:
        """Whether an expression says what something is: in an annotation, or in what ``typing`` makes of it."""
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.arg | ast.AnnAssign) and child is ancestor.annotation:
                return True
            made = ancestor.func if isinstance(ancestor, ast.Call) else getattr(ancestor, "value", None)
            if isinstance(ancestor, ast.Call | ast.Subscript) and made is not child and self._is_of_typing(made):
                return True
            if isinstance(ancestor, FunctionNode):
                return child is ancestor.returns
            if isinstance(ancestor, ast.stmt):
                return False
            child = ancestor
        return False

    def _is_of_typing(self, node: ast.AST | None) -> bool:
        imported = self.imported(node) if isinstance(node, ast.expr) else None
        return imported is not None and package_of(*imported) in ("typing", "typing_extensions")

    def guarded(self, node: ast.AST, test: Predicate) -> bool:
        """Whether a test that satisfies the predicate decides if the node is evaluated.

        That is a branch of an ``if`` or of a conditional expression, an operand beside it, and whatever follows an
        ``assert`` of it or a branch on it that leaves the block.
        """
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.If | ast.IfExp | ast.While):
                if child is not ancestor.test and test(ancestor.test):
                    return True
            elif isinstance(ancestor, ast.BoolOp) and any(
                test(value) for value in ancestor.values if value is not child
            ):
                return True
            if isinstance(child, ast.stmt) and any(test(before.test) for before in self._settled(child, ancestor)):
                return True
            child = ancestor
        return False

    def _settled(self, statement: ast.stmt, owner: ast.AST) -> list[ast.Assert | ast.If]:
        """The statements before one in its block that settle a test for it."""
        found = self._settling.get(id(owner))
        if found is None:
            found = self._settling[id(owner)] = {}
            for block in _blocks(owner):
                settling: list[ast.Assert | ast.If] = []
                for item in block:
                    found[id(item)] = (settling, len(settling))
                    if isinstance(item, ast.Assert | ast.If) and _settles(item):
                        settling.append(item)
        settling, count = found.get(id(statement), ([], 0))
        return settling[:count]

    def tests(self, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """The tests that decide whether a node is evaluated, or what is beside it in ``and`` and ``or``, each with the
        answer that leads there.

        ``not`` is taken off, and turns the answer round; of ``and`` and ``or`` every part stands alone that is settled.
        """
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.If | ast.IfExp | ast.While) and child is not ancestor.test:
                body = ancestor.body if isinstance(ancestor.body, list) else [ancestor.body]
                yield from _answered(ancestor.test, any(item is child for item in body))
            if isinstance(ancestor, ast.BoolOp):
                for value in ancestor.values:
                    yield from _answered(value, isinstance(ancestor.op, ast.And)) if value is not child else ()
            if isinstance(child, ast.stmt):
                for before in self._settled(child, ancestor):
                    yield from _answered(before.test, isinstance(before, ast.Assert))
            child = ancestor

    def statement(self, node: ast.AST) -> tuple[ast.stmt | None, ast.stmt | None]:
        """The statement that a node is part of, and the one after it in its block."""
        for ancestor in (node, *self.ancestors(node)):
            if isinstance(ancestor, ast.stmt):
                return ancestor, next(iter(self.following(ancestor)), None)
        return None, None

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after one in its block."""
        return _after(statement, self.parent(statement))

    def only_value(self, name: ast.Name) -> ast.expr | None:
        """What the one assignment in a function gives the local variable that a name in it reads; else None."""
        function = self.function(name)
        if function is None:
            return None
        spec = function.args
        given = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
        if any(parameter is not None and parameter.arg == name.id for parameter in given):
            return None
        stores = stored_names(function).get(name.id, [])
        if len(stores) != 1:
            return None
        statement = self.parent(stores[0])
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            return statement.value
        return None

    def asked(self, test: ast.expr) -> ast.expr:
        """What a test asks, also where a variable holds the answer."""
        return (self.only_value(test) or test) if isinstance(test, ast.Name) else test

    def version_guarded(self, node: ast.AST) -> bool:
        """Whether the file itself chooses by torch's version or features, or falls back to this after an exception; or
        what this stands in, at the top of the file, is mentioned in such places alone."""
        if self._is_chosen(node):
            return True
        holder = next((outer for outer in (node, *self.ancestors(node)) if self.parent(outer) is self._tree), None)
        if not isinstance(holder, ast.FunctionDef):
            return False
        mentions = [name for name in nodes_of_kind(self._tree, ast.Name) if name.id == holder.name]
        return bool(mentions) and all(map(self._is_chosen, mentions))

    def _is_chosen(self, node: ast.AST) -> bool:
        if any(isinstance(ancestor, ast.ExceptHandler) for ancestor in self.ancestors(node)):
            return True
        return self.guarded(node, self._tests_version)

    def _tests_version(self, test: ast.expr, steps: int = _MAX_STEPS) -> bool:
        """Whether an expression asks for torch's version, or whether torch has a feature.

        Also by a variable, by a flag that another module holds, or by what a function found that tries something with
        torch and takes no arguments: such a flag is about the installation.
        """
        if self._is_imported_flag(test) or self._tries_torch(test):
            return True
        for node in ast.walk(test):
            if self.torch_name(node).startswith(tuple(_VERSIONS)):
                return True
            if isinstance(node, ast.Call) and _asks_for_name(node) and self.is_torch(node.args[0]):
                return True
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and _ABOUT_A_RELEASE.fullmatch(node.value)
            ):
                return True
            given = self.given(node) if steps and isinstance(node, ast.Name) else []
            if any(self._tests_version(value, steps - 1) for value in given):
                return True
        return False

    def _is_imported_flag(self, test: ast.expr) -> bool:
        """Whether a test asks for the truth of what an import binds, and does not call it."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        return isinstance(test, ast.Name) and self.is_imported(test)

    def _tries_torch(self, test: ast.expr) -> bool:
        """Whether a call without arguments leads to a function of the file that asks torch for something in a `try`."""
        if not isinstance(test, ast.Call) or test.args or test.keywords or not isinstance(test.func, ast.Name):
            return False
        name = test.func.id
        made = [s for s in self._tree.body if isinstance(s, ast.FunctionDef) and s.name == name]
        tried = (
            statement for function in made for attempt in nodes_of_kind(function, ast.Try) for statement in attempt.body
        )
        return any(self.torch_name(part) for statement in tried for part in ast.walk(statement))

    def given(self, name: ast.Name) -> list[ast.expr]:
        """What a variable is given by its function, once, or by the module."""
        if self._of_module is None:
            self._of_module = {}
            for statement in self._tree.body:
                if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    for part in (part for target in targets for part in ast.walk(target)):
                        if isinstance(part, ast.Name):
                            self._of_module.setdefault(part.id, []).append(statement.value)
        value = self.only_value(name)
        return [value] if value is not None else self._of_module.get(name.id, [])


@once_for_each_node
def stored_names(function: FunctionNode) -> dict[str, list[ast.Name]]:
    """Where a function, or one in it, binds or deletes variables."""
    found: dict[str, list[ast.Name]] = {}
    for name in nodes_of_kind(function, ast.Name):
        if not isinstance(name.ctx, ast.Load):
            found.setdefault(name.id, []).append(name)
    return found


def _answered(test: ast.expr, answer: bool) -> Iterator[tuple[ast.expr, bool]]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _answered(test.operand, not answer)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is answer:
        for value in test.values:
            yield from _answered(value, answer)
    else:
        yield test, answer


def _after(statement: ast.stmt, owner: ast.AST | None) -> list[ast.stmt]:
    """The statements after one in its block."""
    for block in _blocks(owner):
        for place, item in enumerate(block):
            if item is statement:
                return block[place + 1 :]
    return []


def _blocks(owner: ast.AST | None) -> list[list[ast.stmt]]:
    """The lists of statements of a node."""
    found = (getattr(owner, name, None) for name in ("body", "orelse", "finalbody"))
    return [block for block in found if isinstance(block, list)]


def _asks_for_name(call: ast.Call) -> bool:
    """Whether a call asks whether something has an attribute: ``hasattr(x, name)`` or ``getattr(x, name, default)``."""
    return {"hasattr": 2, "getattr": 3}.get(getattr(call.func, "id", "")) == len(call.args)


def _settles(statement: ast.stmt) -> bool:
    """Whether what follows in a block runs for one answer of a test alone."""
    return isinstance(statement, ast.Assert) or (isinstance(statement, ast.If) and not goes_on(statement.body))


def _is_annotated_dtype(argument: ast.arg) -> bool:
    return argument.annotation is not None and any(
        last_name(part) == "dtype" for part in ast.walk(argument.annotation) if isinstance(part, ast.expr)
    )


def holds_tensor(annotation: ast.expr) -> bool:
    """Whether an annotation says that something is a tensor, or holds some."""
    parts = ast.walk(unquoted(annotation) or annotation)
    return any(last_name(part).endswith("Tensor") for part in parts if isinstance(part, ast.expr))
