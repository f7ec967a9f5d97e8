"""Calls of autocast and GradScaler whose arguments the class does not take, or takes for something else."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.caught import is_caught
from amplint.frozen import dataclass
from amplint.infer.flow.training.roles import is_autocast, is_scaler
from amplint.infer.syntax.references import ambiguous_calls
from amplint.infer.torch_model.signatures import measured_in, signatures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Program, Scope
    from amplint.infer.state.facts import FileFacts

_BOOLEAN_CALLS = frozenset(("torch.cuda.is_available", "bool", "isinstance", "hasattr", "any", "all"))
_DEEPEST = 4
_DEVICE = {"device": "device_type", "device_type": "device"}


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call, the expression that is wrong, what is wrong with it, and whether it raises.

    ``renamed``: the keyword that is wrong and what the callee calls it. ``of_cuda``: a region without its device, whose
    callee is CUDA's own in older releases.
    """

    call: ast.Call
    node: ast.expr
    message: str
    raises: bool = True
    renamed: tuple[str, str] | None = None
    of_cuda: bool = False


@dataclass(frozen=True, slots=True)
class _Callee:
    """Every name that what is called may have, and the ``try`` statement whose imports decide, the first one first."""

    names: tuple[str, ...]
    attempt: ast.Try | None = None

    def at(self, node: ast.expr, around: Surroundings) -> tuple[str, ...]:
        """The names that it may have where an expression is reached: of ``try: from torch.amp import … except
        ImportError: from torch.cuda.amp import …`` the first, so long as no test by what the statement sets decides."""
        return self.names if self.attempt is None or _is_told_apart(node, self.attempt, around) else self.names[:1]


def refused_calls(facts: FileFacts, around: Surroundings) -> Iterator[RefusedCall]:
    """The refused calls of a file, for a release of torch that the signatures are known of."""
    if facts.torch_version < measured_in():
        return
    program = facts.training.program
    scopes = {id(scope.node): scope for scope in program.scopes}
    for call, callee in _called(facts, around):
        if not all(name in signatures() and (is_autocast(name) or is_scaler(name)) for name in callee.names):
            continue
        if not is_caught(facts.source, facts.span(call)):
            scope = scopes.get(id(around.function(call)), program.module)
            yield from _refused(call, callee, around, program, scope)


def _called(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, _Callee]]:
    for reference in facts.references:
        if reference.call is not None:
            yield reference.call, _Callee((reference.name,))
    for call, choices in ambiguous_calls(facts.source.tree):
        names = tuple(name for _, name in choices)
        attempt, *fallbacks = (around.parent(around.parent(alias) or alias) for alias, _ in choices)
        tried = isinstance(attempt, ast.Try) and all(block in attempt.handlers for block in fallbacks)
        yield call, _Callee(names, attempt if tried and isinstance(attempt, ast.Try) else None)


def _is_told_apart(node: ast.expr, attempt: ast.Try, around: Surroundings) -> bool:
    """Whether an expression is reached by a test of what a ``try`` statement sets, or of torch's version."""
    if around.version_guarded(node):
        return True
    stored = {n.id for n in ast.walk(attempt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    tested = {n.id for test, _ in around.tests(node) for n in ast.walk(test) if isinstance(n, ast.Name)}
    return bool(stored & tested)


def _refused(
    call: ast.Call, callee: _Callee, around: Surroundings, program: Program, scope: Scope
) -> Iterator[RefusedCall]:
    """What is wrong with a call, whichever name its callee has: at the dict that ``**`` spreads, if that is it.

    What ``*`` spreads may be empty, so only the other arguments are sure to take a position.
    """
    positional = sum(not isinstance(argument, ast.Starred) for argument in call.args)
    starred = positional < len(call.args)
    own = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
    names = callee.at(call, around)
    refused = _refusal(names, positional, own, starred or bool(spread))
    if refused is not None:
        only_lacks = signatures()[names[0]].refusal(positional, own, unseen=True) is None
        of_cuda = only_lacks and "torch.cuda.amp.autocast" in callee.names
        yield RefusedCall(call, call, refused, renamed=_renamed(names[0], positional, own), of_cuda=of_cuda)
        return
    if starred or len(spread) > 1:
        return
    for mapping, keywords in _mappings(spread, scope):
        reached = names if len(names) > 1 else callee.at(mapping, around)
        refused = _refusal(reached, positional, [*own, *keywords], False)
        if refused is not None:
            yield RefusedCall(call, mapping, refused, renamed=_renamed(reached[0], positional, [*own, *keywords]))
    if len(names) == 1:
        yield from _misplaced(call, names[0], program, scope)


def _refusal(names: tuple[str, ...], positional: int, keywords: list[str], unseen: bool) -> str | None:
    refusals = [signatures()[name].refusal(positional, keywords, unseen) for name in names]
    known = [refusal for refusal in refusals if refusal is not None]
    return f"{names[0]} {known[0]}: this call raises TypeError" if len(known) == len(names) else None


def _renamed(name: str, positional: int, keywords: list[str]) -> tuple[str, str] | None:
    """The device that is given by the keyword of the other class, and how this one calls it."""
    known = signatures()[name].parameters
    wrong = [keyword for keyword in keywords if keyword not in known]
    right = _DEVICE.get(wrong[0]) if len(wrong) == 1 and positional == 0 else None
    return (wrong[0], right) if right in known and right not in keywords else None


def _mappings(spread: list[ast.expr], scope: Scope) -> Iterator[tuple[ast.Dict, list[str]]]:
    """The dicts that a variable spread by ``**`` may hold, where each is written out and never changed."""
    if not spread or not isinstance(spread[0], ast.Name):
        return
    name = spread[0].id
    values = [value for target, value in scope.assignments if isinstance(target, ast.Name) and target.id == name]
    loads = [n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == name and n is not spread[0]]
    if name not in scope.names or any(isinstance(n.ctx, ast.Load) for n in loads) or len(loads) != len(values):
        return
    for value in values:
        keys = [k.value for k in value.keys if isinstance(k, ast.Constant)] if isinstance(value, ast.Dict) else []
        if isinstance(value, ast.Dict) and len(keys) == len(value.keys):
            yield value, [key for key in keys if isinstance(key, str)]


def _misplaced(call: ast.Call, name: str, program: Program, scope: Scope) -> Iterator[RefusedCall]:
    """``autocast("cuda", use_amp)`` and ``GradScaler(use_amp)``, as ``torch.cuda.amp`` takes them."""
    taken = dict(zip(signatures()[name].positional, call.args, strict=False))
    taken |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    dtype, device = taken.get("dtype"), taken.get("device")
    if is_autocast(name) and dtype is not None and _is_boolean(dtype, program, scope):
        yield RefusedCall(call, call, f"passes the boolean {ast.unparse(dtype)} as the dtype, which raises TypeError")
    if is_scaler(name) and device is not None and _is_boolean(device, program, scope):
        message = f"passes {ast.unparse(device)} as the device, so the scaler is on whatever it is: write enabled="
        yield RefusedCall(call, call, message, raises=False)


def _is_boolean(node: ast.expr, program: Program, scope: Scope, depth: int = 0) -> bool:
    """Whether an expression can be nothing but True and False: by its form, or by all that its variable is given."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.BoolOp):
        return all(_is_boolean(value, program, scope, depth) for value in node.values)
    if isinstance(node, ast.Call):
        called = program.name(node.func) or (node.func.id if isinstance(node.func, ast.Name) else "")
        return called in _BOOLEAN_CALLS
    place = program.place(node, scope)
    if place is None or depth > _DEEPEST or not (isinstance(node, ast.Name) or place[0] == "self"):
        return False
    given = [(value, s) for s in program.scopes for target, value in s.assignments if program.place(target, s) == place]
    promised = _is_boolean_parameter(node, program, scope)
    return bool(given or promised) and all(_is_boolean(value, program, s, depth + 1) for value, s in given)


def _is_boolean_parameter(node: ast.expr, program: Program, scope: Scope) -> bool:
    """Whether a name is a parameter that is annotated as a boolean, or has one for its default."""
    owner = scope.binding(node.id) if isinstance(node, ast.Name) else None
    if owner is None or isinstance(owner.node, ast.Module) or not isinstance(node, ast.Name):
        return False
    spec = owner.node.args
    arguments = [*spec.posonlyargs, *spec.args]
    defaults = dict(zip((a.arg for a in arguments[len(arguments) - len(spec.defaults) :]), spec.defaults, strict=True))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    found = next((a for a in (*arguments, *spec.kwonlyargs) if a.arg == node.id), None)
    if found is None:
        return False
    default = defaults.get(node.id)
    if isinstance(default, ast.Constant) and default.value is not None:
        return isinstance(default.value, bool)
    return isinstance(found.annotation, ast.Name) and found.annotation.id == "bool"
