"""Which classes own weights: modules that make layers, parameters or buffers, so that ``.half()`` changes them."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, TypeGuard

from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.dtypes import BITS, COMPLEX, FLOATS
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, External, Layer, Partial, TorchName, Value
from amplint.infer.machine import objects
from amplint.infer.names import classes
from amplint.infer.names.annotations import last_name, unquoted
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.names.namespace import ModuleValue
from amplint.infer.state.frame import Frame
from amplint.infer.state.session import OutOfBudget
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.layers import find_layer
from amplint.infer.torch_model.modules import CONTAINERS, MODULE_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.names.namespace import Namespace
    from amplint.infer.state.session import Session

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter", "torch.nn.ParameterList")
_HOLDING = ("torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder", "torch.nn.RNNBase", "torch.nn.RNNCellBase")
"""Layers that hold others, or weights that the table of layers does not list."""
_QUANTISED = ("torch.ao.nn.", "torch.nn.quantized.", "torch.nn.qat.")

_REGISTERING = ("register_parameter", "register_buffer")
_LISTING = frozenset(("parameters", "named_parameters", "state_dict"))
"""Methods of a module that give its weights."""

Method = ast.FunctionDef | ast.AsyncFunctionDef


class Owners:
    """What is known of the classes of a file, and of those that they derive from or hold, as owners of weights.

    A class owns what any of its methods makes, or a base's: layers are built in ``build`` and ``setup`` too. A buffer
    that is not known to hold integers counts: it is converted with the module. What its source cannot tell is decided
    by use: a module that stores what it was handed, or what code out of sight made, and calls that for a result, runs
    a layer; so does one that calls what only a base that cannot be read may have set.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, bool] = {}
        self._attributes: dict[int, frozenset[str]] = {}

    def owns(self, cls: Class) -> bool:
        """Whether a class is a module with weights."""
        found = self._known.get(id(cls.node))
        if found is None:
            self._known[id(cls.node)] = False
            found = self._known[id(cls.node)] = self._owns(cls)
        return found

    def resolved(self, namespace: Namespace, node: ast.expr) -> Value:
        """What a plain or dotted name stands for at the top level of a module."""
        with suppress(OutOfBudget, RecursionError), self._session.own_budget():
            if isinstance(node, ast.Name):
                return namespace.provided(node.id, objects.binding_evaluator(self._session)) or UNKNOWN
            if isinstance(node, ast.Attribute):
                holder = self.resolved(namespace, node.value)
                if isinstance(holder, (ModuleValue, TorchName, External, Class)):
                    frame = Frame(self._session, namespace)
                    return objects.get_attribute(frame, holder, node.attr, node)
        return UNKNOWN

    def _owns(self, cls: Class) -> bool:
        if classes.is_autograd_function(cls) or not classes.may_be_module(cls):
            return False
        base = classes.torch_base(cls)
        if base is not None and self._makes_weights(TorchName(base)):
            return True
        readable = [base for base in classes.ancestry(cls) if isinstance(base, Class)]
        made = (call for one in readable for method in methods(one) for call in _calls(method, one.namespace))
        if any(self._is_made(call, own, namespace) for call, own, namespace in made):
            return True
        if any(self._grows(name, value, readable) for name, value in _grown(readable)):
            return True
        return classes.is_module(cls) and any(self._runs(name, readable) for name in _called_attributes(readable))

    def _is_made(self, call: ast.Call, own: frozenset[str], namespace: Namespace) -> bool:
        """Whether a call makes weights; ``own``: names that are the function's, not the module's."""
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr in _REGISTERING:
            return not any(map(_is_nothing_or_integers, _given(call)[1:2]))
        root = callee
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in own:
            return False
        value = self.resolved(namespace, callee)
        if isinstance(value, TorchName) and value.name in CONTAINERS:
            held = [a.value if isinstance(a, ast.Starred) else a for a in call.args]
            return any(isinstance(argument, ast.Name) for argument in held)
        return self._makes_weights(value)

    def _grows(self, name: str, value: ast.expr, readable: list[Class]) -> bool:
        """Whether an attribute is a list of layers, and what a method adds to it was made elsewhere."""
        made = ((stored, cls) for cls in readable for stored, _, cls in _assigned(cls, name))
        lists = (self.resolved(cls.namespace, stored.func) for stored, cls in made if isinstance(stored, ast.Call))
        return isinstance(value, ast.Name) and any(
            isinstance(one, TorchName) and one.name in CONTAINERS for one in lists
        )

    def works_on_weights(self, method: Method, cls: Class) -> bool:
        """Whether a method of an owner reads an attribute that weights are in, or lists them."""
        receiver = method.args.args[0].arg if method.args.args else ""
        named = {part.attr for part in nodes_below(method) if _is_attribute_of(part, receiver)}
        return not named.isdisjoint(self._weights(cls) | _LISTING)

    def _weights(self, cls: Class) -> frozenset[str]:
        """Attributes of an owner's objects that weights are in, as far as they can be told."""
        found = self._attributes.get(id(cls.node))
        if found is None:
            base = find_layer(classes.torch_base(cls) or "")
            names = set(base.parameters) if base is not None else set()
            readable = [base for base in classes.ancestry(cls) if isinstance(base, Class)]
            for one in readable:
                for value, method, name in _all_assigned(one):
                    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
                    own = _own_names(method)
                    if any(self._is_made(call, own, one.namespace) for call in calls):
                        names.add(name)
                for method in methods(one):
                    names |= {name for call, *_ in _calls(method, one.namespace) for name in _registered(call)}
            names |= {name for name, value in _grown(readable) if self._grows(name, value, readable)}
            names |= {name for name in _called_attributes(readable) if self._runs(name, readable)}
            found = self._attributes[id(cls.node)] = frozenset(names)
        return found

    def _makes_weights(self, value: Value) -> bool:
        """Whether calling something makes weights."""
        if isinstance(value, TorchName):
            layer = find_layer(value.name)
            if layer is None:
                return value.name in _PARAMETERS or value.name in _HOLDING or value.name.startswith(_QUANTISED)
            added = (name for other in layer.otherwise for name in other.more if not layer.is_buffer(name))
            inner = (TorchName(f"torch.nn.{name}") for _, name in layer.inner)
            return (
                bool(layer.parameters) or any(added) or value.name in _HOLDING or any(map(self._makes_weights, inner))
            )
        if isinstance(value, Class):
            return self.owns(value)
        if isinstance(value, Decorated):
            return self._makes_weights(value.function)
        if isinstance(value, Partial):
            return self._makes_weights(value.callee)
        if isinstance(value, Function) and not isinstance(value.node, ast.Lambda):
            return self._function_makes(value, value.node)
        return len(options_of(value)) > 1 and any(map(self._makes_weights, options_of(value)))

    def _function_makes(self, function: Function, node: Method) -> bool:
        found = self._known.get(id(node))
        if found is None:
            self._known[id(node)] = False
            made = any(self._is_made(*call) for call in _calls(node, function.namespace))
            found = self._known[id(node)] = made and function.namespace.body(node).answers
        return found

    def _runs(self, name: str, readable: list[Class]) -> bool:
        """Whether an attribute that methods call for a result may be a layer, for all that its assignments say."""
        if name in MODULE_METHODS or any(name in cls.members for cls in readable):
            return False
        stored = [pair for cls in readable for pair in _assigned(cls, name)]
        return not stored or any(self._may_be_layer(value, method, cls) for value, method, cls in stored)

    def _may_be_layer(self, value: ast.expr, method: Method, cls: Class) -> bool:
        """Whether what a method stores may be a layer with weights that another made."""
        if isinstance(value, ast.IfExp):
            return any(self._may_be_layer(part, method, cls) for part in (value.body, value.orelse))
        if isinstance(value, ast.BoolOp):
            return any(self._may_be_layer(part, method, cls) for part in value.values)
        if isinstance(value, ast.Name):
            return self._hands_layer(method, value.id, cls.namespace)
        if not isinstance(value, ast.Call):
            return False
        callee = value.func
        if isinstance(callee, ast.Name) and callee.id in _own_names(method):
            return self._hands_layer(method, callee.id, cls.namespace)
        made = self.resolved(cls.namespace, callee)
        return isinstance(made, External) and classes.is_of_library(made)

    def _hands_layer(self, method: Method, name: str, namespace: Namespace) -> bool:
        """Whether a parameter may bring a layer or a class of them: no function, number or text by annotation or
        default."""
        spec = method.args
        positional = [*spec.posonlyargs, *spec.args]
        defaults = dict(zip(reversed([a.arg for a in positional]), reversed(spec.defaults), strict=False))
        defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
        parameter = next((a for a in (*positional, *spec.kwonlyargs) if a.arg == name), None)
        if parameter is None:
            return False
        annotation = unquoted(parameter.annotation) if parameter.annotation is not None else None
        if annotation is not None and any(
            isinstance(node, ast.expr) and last_name(node) == "Callable" for node in ast.walk(annotation)
        ):
            return False
        default = defaults.get(name)
        if default is None or (isinstance(default, ast.Constant) and default.value is None):
            return True
        value = self.resolved(namespace, default)
        return isinstance(value, (Layer, Instance)) or self._makes_weights(value)


def methods(cls: Class) -> Iterator[Method]:
    """The functions that a class's body defines, under decorators or not."""
    for statement in nodes_of_body(cls.node):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement


def nodes_of_body(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements of a class's body, with conditions opened."""
    pending = [*node.body]
    while pending:
        statement = pending.pop(0)
        yield statement
        if isinstance(statement, ast.If):
            pending += [*statement.body, *statement.orelse]


def _calls(method: Method, namespace: Namespace) -> Iterator[tuple[ast.Call, frozenset[str], Namespace]]:
    own = _own_names(method)
    for node in nodes_below(method):
        if isinstance(node, ast.Call):
            yield node, own, namespace


@once_for_each_node
def _own_names(method: Method) -> frozenset[str]:
    """Parameters of a function and variables that it assigns."""
    spec = method.args
    names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    names |= {name.id for name in nodes_of_kind(method, ast.Name) if isinstance(name.ctx, ast.Store)}
    return frozenset(names)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _registered(call: ast.Call) -> Iterator[str]:
    """The name that a call registers a parameter or buffer by."""
    name = call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _REGISTERING and isinstance(name, ast.Constant):
        yield str(name.value)


def _is_nothing_or_integers(node: ast.expr) -> bool:
    """Whether a tensor to register is None, or is made with a dtype that is written out and no floating one."""
    if isinstance(node, ast.Constant):
        return node.value is None
    written = (part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr in BITS)
    return any(not BITS[name] & (FLOATS | COMPLEX) for name in written)


def _called_attributes(readable: list[Class]) -> set[str]:
    """Attributes of the object that its methods call, or whose items they call, and use the result of."""
    found: set[str] = set()
    for method in (method for cls in readable for method in methods(cls)):
        receiver = method.args.args[0].arg if method.args.args else ""
        thrown = {id(statement.value) for statement in nodes_of_kind(method, ast.Expr)}
        loops: dict[str, set[str]] = {}
        for loop in nodes_of_kind(method, ast.For, ast.comprehension):
            for target in nodes_of_kind(loop.target, ast.Name):
                loops.setdefault(target.id, set()).update(_attributes_in(loop.iter, receiver))
        for call in nodes_of_kind(method, ast.Call):
            if id(call) in thrown:
                continue
            callee = call.func.value if isinstance(call.func, ast.Subscript) else call.func
            if isinstance(callee, ast.Name):
                found |= loops.get(callee.id, set())
            elif _is_attribute_of(callee, receiver):
                found.add(callee.attr)
    return found


def _attributes_in(node: ast.expr, receiver: str) -> set[str]:
    return {part.attr for part in ast.walk(node) if _is_attribute_of(part, receiver)}


def _is_attribute_of(node: ast.AST, receiver: str) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == receiver


def _assigned(cls: Class, name: str) -> Iterator[tuple[ast.expr, Method, Class]]:
    """What the methods of a class assign to an attribute of its object."""
    yield from ((value, method, cls) for value, method, stored in _all_assigned(cls) if stored == name)


def _all_assigned(cls: Class) -> Iterator[tuple[ast.expr, Method, str]]:
    """What the methods of a class assign to attributes of its object, and to which."""
    for method in methods(cls):
        receiver = method.args.args[0].arg if method.args.args else ""
        for node in _assignments(method):
            assert node.value is not None
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (
                part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])
            )
            yield from ((node.value, method, part.attr) for part in parts if _is_attribute_of(part, receiver))


@once_for_each_node
def _assignments(method: Method) -> list[ast.Assign | ast.AnnAssign]:
    """The assignments in a method that give a value."""
    found = (node for node in nodes_below(method) if isinstance(node, (ast.Assign, ast.AnnAssign)))
    return [node for node in found if node.value is not None]


_GROWING = ("append", "insert", "extend", "add_module", "register_module", "update")


def _grown(readable: list[Class]) -> Iterator[tuple[str, ast.expr]]:
    """Attributes of the object that its methods add to, and what they add."""
    for method in (method for cls in readable for method in methods(cls)):
        receiver = method.args.args[0].arg if method.args.args else ""
        for node in nodes_below(method):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            if node.func.attr in _GROWING and _is_attribute_of(node.func.value, receiver):
                yield node.func.value.attr, node.args[-1]
