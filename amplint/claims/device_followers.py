"""Tensors that follow another one to its device, but have torch's default dtype.

An adapter is put around a layer of a model that was loaded before, often in half precision: what it makes itself takes
the device from that layer's weights, since it fails at once otherwise, and forgets their dtype. The same happens to
what is concatenated with an activation or an additive mask, whose dtype only the caller knows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import FLOATS
from amplint.infer.lattice.values import Sequence, Tensor
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_MAKERS = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "eye", "linspace"))
_CASTS = frozenset(("to", "type", "type_as", "half", "bfloat16", "float", "double"))


@dataclass(frozen=True, slots=True)
class Follower:
    """``nn.Parameter(torch.zeros(n, device=weight.device))``: ``node`` makes it, on the device of ``weight``."""

    node: ast.Call
    weight: ast.expr


@dataclass(frozen=True, slots=True)
class Joined:
    """``torch.cat([pad, x])``, where ``maker`` made ``pad`` on the device of ``x`` and no dtype was ever given."""

    node: ast.Call
    maker: ast.Call
    pad: ast.expr
    leader: ast.expr


def followers(facts: FileFacts) -> Iterator[Follower]:
    """Each constructor without dtype that gives a parameter the device of another module's weights."""
    calls = {id(r.call): r.name for r in facts.references if r.call is not None}
    wrapped = [r.call for r in facts.references if r.call is not None and r.name in _PARAMETERS and r.call.args]
    for parameter in wrapped:
        maker = parameter.args[0]
        while isinstance(maker, ast.Call) and calls.get(id(maker)) not in _MAKERS:
            method = maker.func
            if not isinstance(method, ast.Attribute) or method.attr in _CASTS:
                break
            maker = method.value
        if not isinstance(maker, ast.Call) or calls.get(id(maker)) not in _MAKERS:
            continue
        given = {keyword.arg: keyword.value for keyword in maker.keywords}
        if "device" not in given or "dtype" in given or None in given:
            continue
        weight = _weight(facts, given["device"], maker)
        if weight is not None:
            yield Follower(maker, weight)


def _weight(facts: FileFacts, device: ast.expr, maker: ast.Call) -> ast.expr | None:
    """The weight whose device an expression is; None where it is the device of anything else."""
    if isinstance(device, ast.Name):
        function = Surroundings.of(facts.source.tree).function(maker)
        statements = nodes_of_kind(function, ast.Assign) if function is not None else []
        values = [
            statement.value
            for statement in statements
            if any(isinstance(target, ast.Name) and target.id == device.id for target in statement.targets)
        ]
        if len(values) != 1:
            return None
        device = values[0]
    if not isinstance(device, ast.Attribute) or device.attr != "device":
        return None
    source = device.value
    if isinstance(source, ast.Attribute) and source.attr in ("weight", "bias"):
        return source
    if isinstance(source, ast.Call) and ast.unparse(source.func) == "next" and source.args:
        asked = source.args[0]
        if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute) and asked.func.attr == "parameters":
            return source if ast.unparse(asked.func.value) != "self" else None
    return None


def joined(facts: FileFacts) -> Iterator[Joined]:
    """Each concatenation of a tensor with one that was made on its device, without a dtype and for it."""
    calls = {id(r.call): r.name for r in facts.references if r.call is not None}
    known = {id(promotion.node) for promotion in facts.promotions if promotion.sink != "returned"}
    integers = _of_integers(facts)
    for reference in facts.references:
        call = reference.call
        if call is None or reference.name not in _JOINING or not call.args or id(call) in known | integers:
            continue
        parts = call.args[0].elts if isinstance(call.args[0], (ast.List, ast.Tuple)) else []
        texts = {ast.unparse(part): part for part in parts}
        for part in parts:
            maker = _follows(facts, part, calls, texts) if isinstance(part, ast.Name) and len(parts) > 1 else None
            if maker is not None:
                yield Joined(call, maker[0], part, maker[1])
                break


_JOINING = ("torch.cat", "torch.concat", "torch.concatenate")
_LEAST_SIZES = 3
"""Sizes that a constant must have been given: with fewer it may be a mask over tokens, or be joined to one, which are
integers as a rule."""


def _of_integers(facts: FileFacts) -> set[int]:
    """``id`` of the concatenations of which some operand is known to hold integers or booleans."""
    found = set()
    for call in facts.calls:
        if call.name in _JOINING:
            held = next(iter(call.arguments.values()), None)
            items = held.items or () if isinstance(held, Sequence) else ()
            if any(isinstance(i, Tensor) and any(x.mask and not x.mask & FLOATS for x in i.dtypes) for i in items):
                found.add(id(call.node))
    return found


def _follows(
    facts: FileFacts, name: ast.Name, calls: dict[int, str], parts: dict[str, ast.expr]
) -> tuple[ast.Call, ast.expr] | None:
    """What made a variable on the device of another part of the list, if nothing that it is bound to casts it."""
    function = Surroundings.of(facts.source.tree).function(name)
    if function is None:
        return None
    found: tuple[ast.Call, ast.expr] | None = None
    for statement in nodes_of_kind(function, ast.Assign):
        if name.id not in _bound(statement.targets):
            continue
        if any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(statement.value)):
            if _looks_after_dtypes(statement.value):
                return None
            continue
        maker = _maker(statement.value, calls)
        leader = parts.get(maker[1]) if maker is not None else None
        if maker is None or leader is None:
            return None
        if len(maker[0].args) >= _LEAST_SIZES or found is None:
            found = maker[0], leader
    return found if found is not None and len(found[0].args) >= _LEAST_SIZES else None


def _bound(targets: list[ast.expr]) -> set[str]:
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _looks_after_dtypes(value: ast.expr) -> bool:
    attributes = (node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute))
    return any(attribute in _CASTS or attribute == "dtype" for attribute in attributes)


def _maker(value: ast.expr, calls: dict[int, str]) -> tuple[ast.Call, str] | None:
    """The constructor without dtype that a value is, and the text of the tensor whose device it takes."""
    device: str | None = None
    while isinstance(value, ast.Call):
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
        if "dtype" in given or None in given:
            return None
        if calls.get(id(value)) in _MAKERS:
            device = device or given.get("device")
            followed = device is not None and device.endswith(".device")
            return (value, device.removesuffix(".device")) if device is not None and followed else None
        method = value.func
        if not isinstance(method, ast.Attribute) or method.attr in _CASTS - {"to"}:
            return None
        if method.attr == "to":
            texts = [*map(ast.unparse, value.args), *given.values()]
            if len(texts) != 1 or not texts[0].endswith(".device"):
                return None
            device = device or texts[0]
        value = method.value
    return None
