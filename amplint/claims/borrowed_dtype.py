"""Tensors that are cast to the dtype of one module, and are then given to another one beside it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amplint.claims.surroundings import FunctionNode, Surroundings
from amplint.claims.suspect import Suspect
from amplint.finding import Cause
from amplint.infer.syntax.bodies import nodes_below
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.infer.state.facts import FileFacts

_CASTS = frozenset(("to", "type", "float", "double", "half", "bfloat16", "type_as"))
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


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
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for method in cls.body:
            if isinstance(method, FunctionNode):
                methods = {node.name for node in cls.body if isinstance(node, FunctionNode)}
                yield from _Flow(method, methods, around).found()


@dataclass(slots=True)
class _Cast:
    owner: str
    statement: ast.stmt


_State = dict[str, _Cast]


@dataclass(slots=True)
class _Flow:
    """One method, its statements followed in order; what several branches do is joined."""

    method: ast.FunctionDef | ast.AsyncFunctionDef
    methods: set[str]
    around: Surroundings
    plain: dict[tuple[str, str], ast.Call] = field(default_factory=dict)
    cast: list[tuple[ast.Call, str, str, _Cast]] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    def found(self) -> Iterator[_Borrowed]:
        arguments = self.method.args
        tensors = {a.arg for a in [*arguments.posonlyargs, *arguments.args][1:] + arguments.kwonlyargs}
        if not tensors or not any(map(_is_dtype, nodes_below(self.method))):
            return
        self._run(self.method.body, {}, tensors)
        seen: set[str] = set()
        for call, tensor, module, cast in self.cast:
            plain = self.plain.get((tensor, module))
            if plain is not None and module not in seen:
                seen.add(module)
                yield _Borrowed(call, tensor, cast.owner, cast.statement, plain)

    def _run(self, body: Sequence[ast.stmt], state: _State, tensors: set[str]) -> _State | None:
        """The casts that hold after some statements; None where these do not go on."""
        for statement in body:
            if isinstance(statement, ast.If):
                self._calls(statement.test, state, tensors)
                ends = [self._run(part, dict(state), tensors) for part in (statement.body, statement.orelse)]
                going = [end for end in ends if end is not None]
                if not going:
                    return None
                restored = {name for name in state if any(name not in end for end in going)}
                state = {n: c for end in going for n, c in end.items() if n not in restored}
            elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
                after = self._run(statement.body, dict(state), tensors)
                state = {**state, **after} if after is not None else state
            elif isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
                after = self._run(statement.body, state, tensors)
                if after is None:
                    return None
                state = after
            else:
                self._calls(statement, state, tensors)
                self._assign(statement, state, tensors)
                if isinstance(statement, _LEAVES):
                    return None if not isinstance(statement, ast.Continue) else state
        return state

    def _calls(self, tree: ast.AST, state: _State, tensors: set[str]) -> None:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Name):
                continue
            function, tensor = node.func, node.args[0].id
            if tensor not in tensors or not isinstance(function, ast.Attribute) or not _is_self(function.value):
                continue
            if function.attr in self.methods or any(map(_is_dtype, [*node.args, *(k.value for k in node.keywords)])):
                continue
            if tensor not in state:
                self.plain.setdefault((tensor, function.attr), node)
            elif not self._belongs(state[tensor].owner, function.attr):
                self.cast.append((node, tensor, function.attr, state[tensor]))

    def _assign(self, statement: ast.stmt, state: _State, tensors: set[str]) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign):
                continue
            if target.id not in tensors:
                self.sources[target.id] = ast.unparse(statement.value)
                continue
            owner = _owner(statement.value, target.id)
            if owner is not None:
                state[target.id] = _Cast(owner, statement)
            elif target.id in state and (
                _retypes(self.around, statement.value) or not _mentions(statement.value, target.id)
            ):
                del state[target.id]
            elif target.id not in state and not _hands_on(statement.value, target.id):
                tensors.discard(target.id)

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
