"""Tensors that are cast to the dtype of one module, and are then given to another one beside it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.claims.surroundings import FunctionNode, Surroundings
from amplint.claims.suspect import Suspect
from amplint.finding import Cause
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.control import Control, Followed
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts

_CASTS = frozenset(("to", "type", "float", "double", "half", "bfloat16", "type_as"))


@dataclass(frozen=True, slots=True)
class _Borrowed:
    """``call`` gives ``tensor`` to a module; ``cast`` gave it the dtype of ``owner``, and nothing took it back."""

    call: ast.Call
    tensor: str
    owner: str
    cast: ast.stmt
    plain: ast.Call
    """Where the same method gives that module the tensor as it came in."""


def borrowed(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each call of a module with a tensor that was cast to another module's dtype."""
    scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.keeps_explicit)
    for found in _borrowed(facts.source.tree, Surroundings.of(facts.source.tree)) if scenarios else ():
        span, cast = facts.span(found.call), facts.span(found.cast)
        message = (
            f"`{ast.unparse(found.call.func)}` gets `{found.tensor}` cast for `{found.owner}`; "
            f"on line {found.plain.lineno} it gets the caller's dtype"
        )
        causes = (Cause(facts.path, cast, f"cast for `{found.owner}`, and not cast back"),)
        yield Suspect(span, span, message, scenarios, ASSUMED, causes)


def _borrowed(tree: ast.Module, around: Surroundings) -> Iterator[_Borrowed]:
    """Calls of a module with a tensor in another module's dtype, in methods that also call it with the tensor as it is.

    That other call says that the module takes what the caller passes; the cast says that this need not be the dtype of
    what the cast names.
    """
    for cls in nodes_of_kind(tree, ast.ClassDef):
        methods = [node for node in cls.body if isinstance(node, FunctionNode)]
        names = {method.name for method in methods}
        for method in methods:
            if any(map(_is_dtype, nodes_of_kind(method, ast.Attribute))):
                yield from _Flow(method, names, around).found()


@dataclass(frozen=True, slots=True)
class _Cast:
    owner: str
    statement: ast.stmt


_Casts = dict[str, _Cast | None]
"""What holds at a point: the cast of each tensor, None for one that was taken back. A point that is reached has one."""


class _Run(Followed[_Casts]):
    """One method; what several branches do is joined."""

    def __init__(self) -> None:
        super().__init__()
        self.live = {"": None}

    def met(self, *points: _Casts) -> _Casts:
        back = {name: None for casts in points for name, cast in casts.items() if cast is None}
        return {name: cast for casts in points for name, cast in casts.items()} | back


class _Flow(Control[_Run]):
    """One method, its statements followed."""

    def __init__(self, method: ast.FunctionDef | ast.AsyncFunctionDef, methods: set[str], around: Surroundings) -> None:
        super().__init__()
        self.method, self.methods, self.around = method, methods, around
        arguments = method.args
        self.tensors = {a.arg for a in [*arguments.posonlyargs, *arguments.args][1:] + arguments.kwonlyargs}
        self.passed: dict[tuple[str, str], ast.Call] = {}
        self.cast: list[tuple[ast.Call, str, str, _Cast]] = []
        self.sources: dict[str, str] = {}

    def found(self) -> Iterator[_Borrowed]:
        if not self.tensors:
            return
        self.run(_Run(), self.method.body)
        seen: set[str] = set()
        for call, tensor, module, cast in self.cast:
            plain = self.passed.get((tensor, module))
            if plain is not None and module not in seen:
                seen.add(module)
                yield _Borrowed(call, tensor, cast.owner, cast.statement, plain)

    def plain(self, f: _Run, statement: ast.stmt) -> None:
        self._calls(f, statement)
        self._assigned(f, statement)

    def test(self, f: _Run, test: ast.expr) -> _Casts:
        self._calls(f, test)
        found: _Casts = super().test(f, test)
        return found

    def _calls(self, f: _Run, tree: ast.AST) -> None:
        for node in nodes_of_kind(tree, ast.Call):
            if not node.args or not isinstance(node.args[0], ast.Name):
                continue
            function, tensor = node.func, node.args[0].id
            if tensor not in self.tensors or not isinstance(function, ast.Attribute) or not _is_self(function.value):
                continue
            if function.attr in self.methods or any(map(_is_dtype, [*node.args, *(k.value for k in node.keywords)])):
                continue
            cast = f.live.get(tensor)
            if cast is None:
                self.passed.setdefault((tensor, function.attr), node)
            elif not self._belongs(cast.owner, function.attr):
                self.cast.append((node, tensor, function.attr, cast))

    def _assigned(self, f: _Run, statement: ast.stmt) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign):
                continue
            if target.id not in self.tensors:
                self.sources[target.id] = ast.unparse(statement.value)
                continue
            owner = _owner(statement.value, target.id)
            if owner is not None:
                f.live = {**f.live, target.id: _Cast(owner, statement)}
            elif f.live.get(target.id) is None:
                if not _hands_on(statement.value, target.id):
                    self.tensors.discard(target.id)
            elif _retypes(self.around, statement.value) or not _mentions(statement.value, target.id):
                f.live = {**f.live, target.id: None}

    def _belongs(self, owner: str, attribute: str) -> bool:
        """Whether what a cast names is the module of that attribute, or was read from it."""
        root = owner.partition(".")[0].partition("[")[0]
        return any(_reads(text, attribute) for text in (owner, self.sources.get(root, "")))


def _reads(text: str, attribute: str) -> bool:
    return re.search(rf"\bself\.{re.escape(attribute)}\b", text) is not None


def _is_dtype(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


def _owner(value: ast.expr, tensor: str) -> str | None:
    """The module or parameter to whose dtype an expression casts a tensor: ``lora_A`` of ``x.to(lora_A.weight.dtype)``.

    None where it does something else to it too, or casts to a dtype that belongs to no module.
    """
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    receiver, given = value.func.value, [*value.args, *(k.value for k in value.keywords)]
    if _is_name(receiver, tensor) and value.func.attr in ("to", "type"):
        dtypes = given
    elif _is_self(receiver) and value.args and _is_name(value.args[0], tensor):
        dtypes = given[1:]
    else:
        return None
    for dtype in dtypes:
        if isinstance(dtype, ast.Attribute) and dtype.attr == "dtype" and not _mentions(dtype, tensor):
            owner = dtype.value
            while isinstance(owner, ast.Attribute) and owner.attr in ("weight", "bias", "data"):
                owner = owner.value
            return None if _is_self(owner) else ast.unparse(owner)
    return None


def _retypes(around: Surroundings, value: ast.expr) -> bool:
    """Whether a cast is part of an expression."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS
        for node in ast.walk(value)
    ) or any(isinstance(node, (ast.Name, ast.Attribute)) and around.is_dtype(node) for node in ast.walk(value))


def _hands_on(value: ast.expr, tensor: str) -> bool:
    """Whether an expression is a view or a reshaped form of a tensor."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _is_name(value.func.value, tensor)


def _mentions(value: ast.expr, tensor: str) -> bool:
    return any(_is_name(node, tensor) for node in ast.walk(value))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_self(node: ast.AST) -> bool:
    return _is_name(node, "self")
