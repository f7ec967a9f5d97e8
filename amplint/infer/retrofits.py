"""Modules that add to a layer which was there before them: adapters around a layer that the constructor is given.

That layer belongs to a model that was loaded, in 16 bit as often as not; what is put around it without a dtype is made
afterwards, in torch's default one. Where the dtypes of construction are kept, the two differ.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeGuard

from amplint.infer import classes
from amplint.infer.bodies import nodes_below
from amplint.infer.values import Class, External, Function, TorchName

_SIZES = frozenset(("in_features", "out_features", "embedding_dim", "num_embeddings"))
"""Attributes of a layer by which what is put around it is sized."""

MAX_METHODS = 60
"""Methods that are looked through behind a constructor."""


def adds_to_given(cls: Class) -> bool:
    """Whether objects of a class are put around a layer, or into the place of one, that a model already has.

    They read the sizes of a layer that the constructor is given, or freeze its weight, and keep it; or they derive from
    a layer whose weight they freeze. Not where the constructor casts to a dtype that it reads somewhere: what it makes
    may then follow the layer; unless other methods cast to the dtype of what it makes, since that may then differ.
    """
    if cls.retrofit is None:
        cls.retrofit = _adds_to_given(cls)
    return cls.retrofit


@dataclass(slots=True)
class _Given:
    """What a class is given: attributes that hold it, and methods that return it."""

    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)


def _adds_to_given(cls: Class) -> bool:
    methods = _construction(cls)
    given = _given(cls, methods)
    layer = any(_is_layer(base) for base in classes.ancestry(cls))
    evidence, follows = False, False
    for method in methods:
        held = _holders(method, given)
        for node in nodes_below(method.node):
            follows = follows or _casts_to_read_dtype(node)
            frozen = _frozen(node)
            if frozen is not None:
                evidence = evidence or _is_given(frozen, held, given) or (layer and _is_self(frozen))
            elif isinstance(node, ast.Attribute) and node.attr in _SIZES and bool(given.attributes):
                evidence = evidence or _is_given(node.value, held, given)
    return evidence and (not follows or _casts_to_added(cls, given, methods))


def _casts_to_added(cls: Class, given: _Given, construction: list[Function]) -> bool:
    """Whether a method casts to the dtype of something of the object that is not what it was given."""
    built = {id(method.node) for method in construction}
    for base in classes.ancestry(cls):
        for member in base.members.values() if isinstance(base, Class) else ():
            if not isinstance(member, Function) or id(member.node) in built:
                continue
            owners = [_owner(node.value) for node in nodes_below(member.node) if _is_dtype(node)]
            names = {owner.id for owner in owners if isinstance(owner, ast.Name)}
            for node in nodes_below(member.node) if names else ():
                if isinstance(node, ast.Assign) and any(getattr(t, "id", None) in names for t in node.targets):
                    owners.append(_owner(node.value))
            if any(_is_own(owner) and owner.attr not in given.attributes for owner in owners):
                return True
    return False


def _owner(node: ast.expr) -> ast.expr:
    """``self.lora_A`` of ``self.lora_A[name].weight``."""
    while isinstance(node, (ast.Subscript, ast.Attribute)) and not _is_own(node):
        node = node.value
    return node


def _construction(cls: Class) -> list[Function]:
    """The constructors of a class and its bases, and the methods that they call."""
    found: dict[int, Function] = {}
    pending = [base.members.get("__init__") for base in classes.ancestry(cls) if isinstance(base, Class)]
    while pending and len(found) < MAX_METHODS:
        member = pending.pop()
        if not isinstance(member, Function) or id(member.node) in found:
            continue
        found[id(member.node)] = member
        for node in nodes_below(member.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_self(node.func.value):
                pending.append(classes.find_member(cls, node.func.attr))
    return list(found.values())


def _given(cls: Class, methods: list[Function]) -> _Given:
    """What constructors store of their parameters; methods of the class that return such an attribute."""
    given = _Given()
    for method in methods:
        if method.name == "__init__":
            spec = method.node.args
            names = {a.arg for a in [*spec.posonlyargs, *spec.args][1:] + spec.kwonlyargs}
            for node in nodes_below(method.node):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
                    given.attributes.update(t.attr for t in node.targets if _is_own(t))
    for base in classes.ancestry(cls):
        for name, member in base.members.items() if isinstance(base, Class) else ():
            if isinstance(member, Function) and given.attributes and _returns(member, given):
                given.methods.add(name)
    return given


def _returns(method: Function, given: _Given) -> bool:
    body = getattr(method.node, "body", None)
    if not isinstance(body, list) or len(body) > 4 or not isinstance(body[-1], ast.Return):
        return False
    value = body[-1].value
    return value is not None and _is_given(value, _holders(method, given), given)


def _holders(method: Function, given: _Given) -> set[str]:
    """Variables of a method that hold what the class was given."""
    held: set[str] = set()
    if method.name == "__init__":
        spec = method.node.args
        stored = {
            node.value.id
            for node in nodes_below(method.node)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Name)
            and any(_is_own(t) and t.attr in given.attributes for t in node.targets)
        }
        held |= stored & {a.arg for a in [*spec.posonlyargs, *spec.args][1:] + spec.kwonlyargs}
    for node in nodes_below(method.node):
        if isinstance(node, ast.Assign) and _mentions_given(node.value, held, given):
            held.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return held


def _mentions_given(value: ast.expr, held: set[str], given: _Given) -> bool:
    chain = isinstance(value, ast.Attribute) and value.attr in given.attributes and isinstance(value.value, ast.Name)
    return chain or _is_given(value, held, given)


def _is_given(node: ast.expr, held: set[str], given: _Given) -> bool:
    """Whether an expression is what the class was given: a variable, an attribute of the object, or a method of it."""
    if isinstance(node, ast.Name):
        return node.id in held
    if isinstance(node, ast.Call):
        node = node.func
        return _is_own(node) and node.attr in given.methods
    return _is_own(node) and node.attr in given.attributes


def _frozen(node: ast.AST) -> ast.expr | None:
    """The layer whose weight a statement or call freezes: ``layer`` of ``layer.weight.requires_grad = False``."""
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False:
        first = node.targets[0]
        target = first.value if isinstance(first, ast.Attribute) and first.attr == "requires_grad" else None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        off = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        target = node.func.value if isinstance(off, ast.Constant) and off.value is False else None
    return target.value if isinstance(target, ast.Attribute) and target.attr == "weight" else None


def _is_dtype(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


def _casts_to_read_dtype(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "type")):
        return False
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(getattr(part, "attr", getattr(part, "id", "")).endswith("dtype") for part in given)


def _is_own(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and _is_self(node.value)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_layer(base: object) -> bool:
    """A layer with a weight: of torch, or of a library that the inference does not know."""
    if isinstance(base, TorchName):
        return base.name.startswith("torch.nn.") and base.name != "torch.nn.Module"
    return isinstance(base, External)
