"""Modules that add to a layer which was there before them: adapters around a layer that the constructor is given.

That layer belongs to a model that was loaded, in 16 bit as often as not; what is put around it without a dtype is made
afterwards, in torch's default one. Where the dtypes of construction are kept, the two differ.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TypeGuard

from amplint.frozen import dataclass
from amplint.infer.lattice.values import External, TorchName
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class, Function
from amplint.infer.syntax.bodies import nodes_inside, once_for_each_node

_SIZES = frozenset(("in_features", "out_features"))
"""Attributes of a layer by which what is put around it is sized. Those of an embedding tell nothing: a whole model is
as wide as the one that it is given, and has as many outputs."""

MAX_METHODS = 60
"""Methods that are looked through behind a constructor."""


def adds_to_given(cls: Class) -> bool:
    """Whether objects of a class are put around a layer, or into the place of one, that a model already has.

    They read the sizes of a layer that the constructor is given, or freeze its weight, and keep it; or they derive from
    a layer whose weight they freeze. A layer is what they call or take a weight of: a configuration has sizes too. Not
    where the constructor casts to a dtype that it reads somewhere: what it makes may then follow the layer; unless
    other methods cast to the dtype of what it makes, since that may then differ.
    """
    if cls.retrofit is None:
        cls.retrofit = _adds_to_given(cls)
    return cls.retrofit


def given_to(cls: Class) -> set[str]:
    """The attributes in which the constructor of a class stores what it is given."""
    return _given(cls, _construction(cls)).attributes


@dataclass(slots=True)
class _Given:
    """What a class is given: attributes that hold it, and methods that return it. ``layer``: whether methods use it as
    one."""

    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    layer: bool = False


@dataclass(frozen=True, slots=True)
class _Walked:
    """What one walk over a method tells, whatever its class is given.

    ``called``: the methods of its object that it calls. ``assigned``: its plain assignments. ``frozen``: layers whose
    weight it freezes. ``sizes``: sizes of layers that it reads. ``dtypes``: dtypes that it reads. ``follows``: whether
    it casts to one. ``layers``: what it calls, or takes a weight of.
    """

    called: tuple[str, ...]
    layers: tuple[ast.expr, ...]
    assigned: tuple[ast.Assign, ...]
    frozen: tuple[ast.expr, ...]
    sizes: tuple[ast.Attribute, ...]
    dtypes: tuple[ast.Attribute, ...]
    follows: bool

    @property
    def hints(self) -> bool:
        """Whether it does to some layer what is done to one that was there before."""
        return bool(self.frozen or self.sizes)


@once_for_each_node
def _walked(method: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> _Walked:
    called: list[str] = []
    layers: list[ast.expr] = []
    assigned: list[ast.Assign] = []
    frozen: list[ast.expr] = []
    sizes: list[ast.Attribute] = []
    dtypes: list[ast.Attribute] = []
    follows = False
    for node in nodes_inside(method):
        if type(node) is ast.Attribute:
            if node.attr in _SIZES:
                sizes.append(node)
            elif node.attr == "dtype":
                dtypes.append(node)
            elif node.attr == "weight":
                layers.append(node.value)
        elif type(node) is ast.Call:
            layers.append(node.func)
            if isinstance(node.func, ast.Attribute):
                if _is_self(node.func.value):
                    called.append(node.func.attr)
                frozen += _frozen_by(node, node.func)
                follows = follows or _casts_to_read_dtype(node, node.func)
        elif type(node) is ast.Assign:
            assigned.append(node)
            frozen += _frozen_in(node)
    return _Walked(tuple(called), tuple(layers), tuple(assigned), tuple(frozen), tuple(sizes), tuple(dtypes), follows)


def _adds_to_given(cls: Class) -> bool:
    methods = _construction(cls)
    if not any(_walked(method.node).hints for method in methods):
        return False
    given = _given(cls, methods)
    layer = any(_is_layer(base) for base in classes.ancestry(cls))
    if not given.attributes and not layer:
        return False
    if not any(_shows(method, given, layer) for method in methods):
        return False
    follows = any(_walked(method.node).follows for method in methods)
    return not follows or _casts_to_added(cls, given, methods)


def _shows(method: Function, given: _Given, layer: bool) -> bool:
    """Whether a method reads the sizes of what the class was given, or freezes its weight, or that of the object."""
    walked = _walked(method.node)
    held = _holders(method, given) if walked.hints else set()
    return any(_is_given(frozen, held, given) or (layer and _is_self(frozen)) for frozen in walked.frozen) or (
        given.layer and any(_is_given(node.value, held, given) for node in walked.sizes)
    )


def _casts_to_added(cls: Class, given: _Given, construction: list[Function]) -> bool:
    """Whether a method casts to the dtype of something of the object that is not what it was given."""
    built = {id(method.node) for method in construction}
    for base in classes.ancestry(cls):
        for member in base.members.values() if isinstance(base, Class) else ():
            if not isinstance(member, Function) or id(member.node) in built:
                continue
            walked = _walked(member.node)
            owners = [_owner(node.value) for node in walked.dtypes]
            names = {owner.id for owner in owners if isinstance(owner, ast.Name)}
            for node in walked.assigned if names else ():
                if any(getattr(t, "id", None) in names for t in node.targets):
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
        pending.extend(classes.find_member(cls, name) for name in _walked(member.node).called)
    return list(found.values())


def _given(cls: Class, methods: list[Function]) -> _Given:
    """What constructors store of their parameters; methods of the class that return such an attribute."""
    given = _Given()
    for method in methods:
        if method.name == "__init__":
            spec = method.node.args
            names = {a.arg for a in [*spec.posonlyargs, *spec.args][1:] + spec.kwonlyargs}
            for node in _walked(method.node).assigned:
                if isinstance(node.value, ast.Name) and node.value.id in names:
                    given.attributes.update(t.attr for t in node.targets if _is_own(t))
    for base in classes.ancestry(cls):
        for name, member in base.members.items() if isinstance(base, Class) else ():
            if isinstance(member, Function) and given.attributes and _returns(member, given):
                given.methods.add(name)
    given.layer = any(
        _is_given(node, _holders(member, given), given)
        for base in classes.ancestry(cls)
        for member in (base.members.values() if isinstance(base, Class) and given.attributes else ())
        if isinstance(member, Function) and not isinstance(member.node, ast.Lambda)
        for node in _walked(member.node).layers
    )
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
    assigned = _walked(method.node).assigned
    if method.name == "__init__":
        spec = method.node.args
        stored = {
            node.value.id
            for node in assigned
            if isinstance(node.value, ast.Name) and any(_is_own(t) and t.attr in given.attributes for t in node.targets)
        }
        held |= stored & {a.arg for a in [*spec.posonlyargs, *spec.args][1:] + spec.kwonlyargs}
    for node in assigned:
        if _mentions_given(node.value, held, given):
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


def _frozen_in(node: ast.Assign) -> list[ast.expr]:
    """The layer whose weight a statement freezes: ``layer`` of ``layer.weight.requires_grad = False``."""
    first = node.targets[0]
    if not (isinstance(node.value, ast.Constant) and node.value.value is False):
        return []
    return _with_weight(first.value) if isinstance(first, ast.Attribute) and first.attr == "requires_grad" else []


def _frozen_by(node: ast.Call, method: ast.Attribute) -> list[ast.expr]:
    """The layer whose weight a call freezes: ``layer`` of ``layer.weight.requires_grad_(False)``."""
    if method.attr != "requires_grad_":
        return []
    off = node.args[0] if node.args else next((k.value for k in node.keywords), None)
    return _with_weight(method.value) if isinstance(off, ast.Constant) and off.value is False else []


def _with_weight(node: ast.expr) -> list[ast.expr]:
    return [node.value] if isinstance(node, ast.Attribute) and node.attr == "weight" else []


def _casts_to_read_dtype(node: ast.Call, method: ast.Attribute) -> bool:
    if method.attr not in ("to", "type"):
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
