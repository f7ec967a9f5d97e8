"""Functions, classes and instances of the project: definitions, attributes, construction."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutocastContext, AutogradContext
from amplint.infer.lattice.decorators import CustomDecorator, Decorated
from amplint.infer.lattice.joining import is_none, merge, options_of, unite
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.kinds import KINDS, asked
from amplint.infer.lattice.values import (
    UNKNOWN,
    Builtin,
    Const,
    Device,
    DTypeValue,
    External,
    FloatLimits,
    Layer,
    Limit,
    Mapping,
    Number,
    Partial,
    Sequence,
    Tensor,
    TorchName,
    Union,
    Value,
)
from amplint.infer.machine import builtins, choices, families, fields
from amplint.infer.names import classes, texts
from amplint.infer.names.definitions import Bound, Class, Function, Instance, Super
from amplint.infer.names.namespace import Evaluate, ModuleValue, Namespace
from amplint.infer.state.dispatch import call, evaluate, execute
from amplint.infer.state.frame import Frame
from amplint.infer.state.meeting import alike, carries_dtype
from amplint.infer.state.session import items_place
from amplint.infer.syntax.bindings import Binding, import_statement
from amplint.infer.syntax.bodies import FunctionNode, called_plainly, hands_on
from amplint.infer.syntax.late import changing
from amplint.infer.syntax.templates import is_family
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import (
    comm_hooks,
    distributions,
    layer_lists,
    memories,
    modules,
    optimizers,
    placing,
    tensors,
    torch_calls,
)

if TYPE_CHECKING:
    from amplint.infer.state.session import Session


def imported(session: Session, namespace: Namespace, alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> Value:
    """What an import statement binds: ``from torch import float16`` a dtype."""
    return torch_calls.named(session, namespace.imported(alias, statement, binding_evaluator(session)))


@lru_cache(maxsize=1)
def binding_evaluator(session: Session) -> Evaluate:
    """What evaluates a module-level binding when it is first asked for."""

    def evaluate_binding(namespace: Namespace, name: str, binding: Binding) -> Value:
        statement = import_statement(binding)
        if isinstance(binding, ast.alias):
            return imported(session, namespace, binding, statement) if statement else UNKNOWN
        frame = Frame(session, namespace)
        if namespace.own:
            execute(frame, [binding])
        else:
            with session.own_budget():
                execute(frame, [binding])
        return frame.variables.get(name, UNKNOWN)

    return evaluate_binding


def function_value(frame: Frame, node: FunctionNode, owner: Class | None = None) -> Value:
    """A function as its decorators leave it; a constructor runs, whatever decorates it."""
    closure = {**frame.closure, **frame.variables} if frame.depth or frame.closure else None
    if owner is not None:
        closure = frame.closure or None
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    around = frame.definition
    late = changing(around, frame.late, node) if closure and around is not None else frozenset()
    value: Value = Function(node, frame.namespace, closure, owner, name, frame if late else None, late)
    for decorator in [] if isinstance(node, ast.Lambda) or name == "__init__" else reversed(node.decorator_list):
        value = _decorate(frame, value, decorator)
    return value


def _decorate(frame: Frame, value: Value, decorator: ast.expr) -> Value:
    applied = evaluate(frame, decorator)
    if isinstance(applied, Builtin) and applied.name in ("property", "staticmethod", "classmethod"):
        return Decorated(value, kind={"staticmethod": "static", "classmethod": "class"}.get(applied.name, "property"))
    if isinstance(applied, External) and applied.name == "functools.cached_property":
        return Decorated(value, kind="property")
    if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
        return UNKNOWN
    if _hands_back(frame, applied):
        return value
    live = frame.live
    result = call(frame, applied, Arguments([value]), decorator)
    frame.live = live
    options = options_of(result)
    if any(option.key == value.key for option in options):
        return value
    wrappers = [option for option in options if isinstance(option, Function)]
    if wrappers:
        return value if _passes_through(wrappers[0], value) else Decorated(value, wrapper=wrappers[0])
    if UNKNOWN not in options:
        return result
    return value if _hands_on(applied) else Decorated(value, kind="opaque")


def _hands_back(frame: Frame, applied: Value) -> bool:
    """Whether a decorator only registers what it is given."""
    if not isinstance(applied, Function) or isinstance(applied.node, ast.Lambda):
        return False
    return applied.namespace.body(applied.node).identity


def _hands_on(applied: Value) -> bool:
    """Whether a decorator, of which it is not known what it calls, only passes the arguments on."""
    return isinstance(applied, Function) and not isinstance(applied.node, ast.Lambda) and hands_on(applied.node)


def _passes_through(wrapper: Function, value: Value) -> bool:
    """Whether a wrapper around a function does nothing to tensors of its own: then calling it is calling that."""
    if isinstance(wrapper.node, ast.Lambda) or not wrapper.closure:
        return False
    if wrapper.namespace.body(wrapper.node).computes:
        return False
    called = called_plainly(wrapper.node)
    return any(value.key == v.key for name, v in wrapper.closure.items() if name in called)


def decorate_with(applied: Value, value: Value) -> Value | None:
    """What a decorator that changes how a function runs makes of it; None for any other callable."""
    if isinstance(applied, AutocastContext):
        return Decorated(value, autocast=applied)
    if isinstance(applied, CustomDecorator):
        return Decorated(value, role=applied.role, cast_inputs=applied.cast_inputs, casts=applied.casts)
    return None


def class_value(frame: Frame, node: ast.ClassDef) -> Class:
    """A class with its bases and members."""
    unparametrised = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    bases = tuple(evaluate(frame, base) for base in unparametrised)
    closure = {**frame.closure, **frame.variables} if frame.depth or frame.closure else None
    value = Class(node, frame.namespace, node.name, bases, {}, closure)
    inner = Frame(frame.session, frame.namespace, closure=closure)
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner.variables[statement.name] = function_value(inner, statement, value)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            execute(inner, [statement])
    value.members = inner.variables
    if frame.depth:
        frame.session.local_classes.setdefault(id(node), value)
    return value


def get_attribute(frame: Frame, value: Value, name: str, node: ast.expr) -> Value:
    """``value.name``."""
    if value is UNKNOWN:
        return _of_unknown(frame, name)
    if isinstance(value, Tensor):
        return tensors.attribute(frame, value, name, node)
    if isinstance(value, Instance):
        return _instance_attribute(frame, value, name, node)
    if isinstance(value, TorchName):
        if name == "__name__":
            return texts.name_of(value)
        return torch_calls.attribute(frame, value, name)
    if isinstance(value, External):
        return Number("float") if f"{value.name}.{name}" in _CONSTANTS else External(f"{value.name}.{name}")
    if isinstance(value, Layer):
        known = _layer_attribute(frame, value, name)
        of_any = known is UNKNOWN and value.name == layer_lists.ANY
        return get_attribute(frame, UNKNOWN, name, node) if of_any else known
    if isinstance(value, Union):
        return unite(*(get_attribute(frame, o, name, node) for o in value.options if not is_none(o)))
    if isinstance(value, ModuleValue):
        found = value.namespace.lookup(name, binding_evaluator(frame.session))
        if found is None:
            package = value.namespace.package
            submodule = value.namespace.project.find(f"{package}.{name}" if package else name, value.namespace)
            return ModuleValue(submodule) if submodule else UNKNOWN
        return found
    if isinstance(value, Super):
        return _super_attribute(frame, value, name)
    if isinstance(value, Class):
        if name == "apply" and classes.is_autograd_function(value):
            return Builtin("autograd.apply", value)
        member = classes.find_member(value, name)
        if member is None and name == "__name__":
            return texts.name_of(value)
        return _of_class(value, member) if member is not None else UNKNOWN
    if isinstance(value, AutogradContext):
        return _context_attribute(value, name)
    if isinstance(value, (Mapping, Sequence)):
        if isinstance(value, Mapping):
            frame.reads.add(items_place(value))
        if (
            isinstance(value, Mapping)
            and isinstance(value.other, type(UNKNOWN))
            and name in ("min", "max", "eps", "tiny")
        ):
            return value.other
        if isinstance(value, Mapping) and value.other is not None and not value.items and name in _FINFO:
            return value.other
        return Builtin(name, value)
    if value is comm_hooks.BUCKET:
        return comm_hooks.attribute(name)
    if value is distributions.OF_NUMBERS:
        return distributions.attribute(name)
    if isinstance(value, FloatLimits) and name in _FINFO and name != "bits":
        return Number("float", extreme=Limit(name, value.dtypes))
    if isinstance(value, DTypeValue) and name in KINDS:
        return asked(value.dtypes, name)
    if isinstance(value, Device) and name == "type":
        return value
    if texts.text_of(value) is not None:
        return texts.method(value, name)
    if isinstance(value, Partial):
        return texts.attribute_of_partial(value, name)
    if name == "__name__":
        return texts.name_of(value)
    if name == "dtype":
        return DTypeValue(frame.session.unknown)
    if name == "device":
        return Device(None)
    if isinstance(value, Builtin) and value.name.startswith("unknown."):
        return Builtin(f"unknown.{name}", UNKNOWN)
    return UNKNOWN


def _of_unknown(frame: Frame, name: str) -> Value:
    """An attribute of what may be anything."""
    if name == "grad":
        return frame.session.gradient()
    if name == "__name__":
        return texts.name_of(UNKNOWN)
    if name == "dtype":
        return DTypeValue(frame.session.unknown)
    if name in memories.LIES_ON:
        return memories.lies_on(frame, name, host=False)
    return Device(None) if name == "device" else Builtin(f"unknown.{name}", UNKNOWN)


_CONSTANTS = frozenset(
    f"{module}.{name}" for module in ("math", "numpy") for name in ("pi", "e", "inf", "nan", "tau", "euler_gamma")
)
_FINFO = ("min", "max", "eps", "tiny", "smallest_normal", "bits", "resolution")


def _of_class(cls: Class, member: Value) -> Value:
    """A class attribute reached through the class: static methods lose their wrapper, class methods get the class."""
    if isinstance(member, Decorated) and member.kind == "static":
        return member.function
    if isinstance(member, Decorated) and member.kind == "class":
        function = member.function
        while isinstance(function, Decorated):
            function = function.function
        return Bound(function, cls) if isinstance(function, Function) else UNKNOWN
    return member


def _instance_attribute(frame: Frame, instance: Instance, name: str, node: ast.expr) -> Value:
    if is_family(name):
        return families.member(frame, instance, name)
    frame.reads.add((identity(instance), name))
    if name in instance.attributes:
        return placing.as_kept(frame, instance, name)
    if name == "__class__":
        return instance.cls
    member = classes.find_member(instance.cls, name)
    if member is not None:
        return _bind(frame, fields.usual(instance.cls, member), instance, node)
    if name == optimizers.GROUPS and classes.is_optimizer(instance.cls):
        return optimizers.groups(frame, instance, node)
    base = classes.torch_base(instance.cls)
    if base is None and name in modules.REGISTERING and classes.is_module(instance.cls):
        return Builtin(f"module.{name}", instance)
    if base is not None and base.startswith("torch.nn."):
        if name == "training":
            return Builtin("training")
        layer = instance.attributes.get("")
        if isinstance(layer, Layer) and name not in modules.REGISTERING:
            found = _layer_attribute(frame, layer, name)
            if found is not UNKNOWN:
                return found
        if name in modules.MODULE_METHODS:
            return Builtin(f"module.{name}", instance)
    computed = families.method(instance, name) or families.of_family(frame, instance, name)
    if computed is not None:
        return computed
    stored = instance.attributes.get("")
    if isinstance(stored, Mapping) or classes.is_dict(instance.cls):
        return Builtin(f"dict.{name}", instance) if name == "get" else Builtin(name, stored or UNKNOWN)
    if name == "dtype":
        return instance.attributes.setdefault("dtype", frame.session.symbolic_dtype(f"{instance.cls.name}.dtype"))
    if name == "device":
        return Device(None)
    return UNKNOWN


def _bind(frame: Frame, member: Value, instance: Value, node: ast.expr) -> Value:
    if isinstance(member, Function):
        return Bound(member, instance)
    if isinstance(member, Decorated):
        if member.kind == "property":
            return call(frame, _bind(frame, member.function, instance, node), Arguments(), node)
        if member.kind == "static":
            return member.function
        if member.kind == "class":
            return _of_class(instance.cls, member) if isinstance(instance, Instance) else UNKNOWN
        wrapper = _bind(frame, member.wrapper, instance, node) if member.wrapper is not None else None
        return replace(member, function=_bind(frame, member.function, instance, node), wrapper=wrapper)
    return member


def _layer_attribute(frame: Frame, layer: Layer, name: str) -> Value:
    if name in layer.tensors:
        return layer.tensors[name]
    if name == "training":
        return Builtin("training")
    if name in modules.MODULE_METHODS:
        return Builtin(f"module.{name}", layer)
    if name == "forward":
        return layer
    if isinstance(layer.children, Mapping) and name in layer.children.items:
        return layer.children.items[name]
    if name == "bias" and layer.name != layer_lists.ANY:
        return Const(None)
    return UNKNOWN


def _super_attribute(frame: Frame, value: Super, name: str) -> Value:
    instance = value.instance
    if isinstance(instance, Instance):
        member = classes.find_member(instance.cls, name, after=value.owner)
        if member is not None:
            return _bind(frame, member, instance, ast.Name("super"))
        if name == "__init__":
            return Builtin("super.__init__", instance)
        layer = instance.attributes.get("")
        if name == "forward" and isinstance(layer, Layer):
            return layer
        if name == "__call__" and classes.is_module(instance.cls):
            return _instance_attribute(frame, instance, "forward", ast.Name("super"))
        if isinstance(layer, Mapping) or classes.is_dict(instance.cls):
            return Builtin("dict.get", instance) if name == "get" else Builtin(name, layer or UNKNOWN)
        if name in modules.MODULE_METHODS:
            return Builtin(f"module.{name}", instance)
        return families.method(instance, name) or UNKNOWN
    return UNKNOWN


def _context_attribute(context: AutogradContext, name: str) -> Value:
    if name == "saved_tensors":
        return context.saved
    if name in ("save_for_backward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads"):
        return Builtin(f"ctx.{name}", context)
    if name == "needs_input_grad":
        return UNKNOWN
    return context.attributes.get(name, UNKNOWN)


def set_attribute(frame: Frame, value: Value, name: str, new: Value) -> None:
    """``value.name = new``. In a branch, or outside the constructor, what was there stays possible.

    A module that something not known takes the place of (``set_input_embeddings``) is taken to be replaced by its like,
    and so is a layer that a method makes anew.
    """
    if isinstance(value, Instance) and is_family(name):
        families.set_member(frame, value, name, _kept(new))
    elif isinstance(value, Instance):
        if frame.constructing is value:
            new = placing.as_given(frame, new) if classes.is_module(value.cls) else new
            choices.note(frame, value, name, new)
        old = value.attributes.get(name)
        if isinstance(old, (Layer, Instance)) and (new is UNKNOWN or (isinstance(new, Tensor) and new.maybe)):
            return
        if isinstance(old, Layer) and isinstance(new, Layer) and old.name == new.name and placing.made_later(frame):
            return
        certain = frame.constructing is value and frame.branches == 0
        if old is not None and not certain:
            new = merge(frame.session, old, frame.session.all_lanes, new, frame.live)
        layer_lists.register(frame, value, name, new)
        value.attributes[name] = _kept(new)
        if carries_dtype(new) and (old is None or not alike(old, new)):
            frame.session.changed((identity(value), name), making=frame.constructing is value)
    elif isinstance(value, AutogradContext):
        old = value.attributes.get(name)
        if old is not None and frame.branches:
            new = merge(frame.session, old, frame.session.all_lanes, new, frame.live)
        value.attributes[name] = new


def _kept(value: Value) -> Value:
    """A value as an attribute holds it: of a tensor it is known that it was stored."""
    if not isinstance(value, Tensor) or value.origin is None or value.leaf or value.origin.kept:
        return value
    return replace(value, origin=replace(value.origin, kept=True))


def stays(frame: Frame, node: ast.Attribute) -> bool:
    """Whether an attribute of a variable's object is what the constructor left: no other function there sets it."""
    instance = _object_of(frame, node)
    return instance is not None and node.attr in instance.attributes and not classes.set_later(instance.cls, node.attr)


def lacks(instance: Instance, name: str) -> bool:
    """Whether an object has no such attribute: its constructors set one only on paths that were not taken."""
    if instance.open or name in instance.attributes or classes.find_member(instance.cls, name) is not None:
        return False
    bases = [base for base in classes.ancestry(instance.cls) if isinstance(base, Class)]
    return any(name in base.namespace.attributes_set(base.node)[0] for base in bases) and not classes.set_later(
        instance.cls, name
    )


def is_missing(frame: Frame, node: ast.Attribute, value: Value) -> bool:
    """Whether what a method is called on is None, or is not there at all, in an object that stays as it was made."""
    if value is UNKNOWN:
        instance = _object_of(frame, node)
        return instance is not None and frame.constructing is not instance and lacks(instance, node.attr)
    return is_none(value) and stays(frame, node)


def _object_of(frame: Frame, node: ast.Attribute) -> Instance | None:
    """The object that a variable holds whose attribute this is."""
    value = frame.variables.get(node.value.id) if isinstance(node.value, ast.Name) else None
    return value if isinstance(value, Instance) and not value.open else None


def instantiate(frame: Frame, cls: Class, arguments: Arguments, node: ast.expr) -> Value:
    """Call a class. One instance serves every construction with equal arguments."""
    if classes.is_autograd_function(cls):
        return UNKNOWN
    session = frame.session
    arguments = arguments.generalised()
    adding = placing.is_added(frame)
    key = ("instance", cls.key, arguments.key, frame.in_module, adding, placing.stage(frame))
    found = session.memo.get(key)
    if found is not None:
        frame.makes.add(identity(found))
        return found
    instance = Instance(cls, {}, classes.has_unknown_base(cls))
    frame.makes.add(identity(instance))
    session.memo[key] = instance
    session.keep_alive.append(arguments)
    initialize(frame, instance, arguments, node)
    return instance


def initialize(frame: Frame, instance: Instance, arguments: Arguments, node: ast.expr) -> None:
    """Run the constructor on a fresh instance."""
    member = classes.find_member(instance.cls, "__init__")
    if classes.is_dataclass(instance.cls):
        for name, value in arguments.bind(tuple(classes.field_names(instance.cls))).items():
            instance.attributes[name] = value
        member, arguments = classes.find_member(instance.cls, "__post_init__"), Arguments()
        if not isinstance(member, Function) or classes.is_dict(instance.cls):
            return
    if isinstance(member, Function):
        inside = Frame(
            frame.session,
            frame.namespace,
            autocast=frame.autocast,
            region=frame.region,
            live=frame.live,
            depth=frame.depth,
            in_module=frame.in_module,
            constructing=instance,
        )
        inside.adding, inside.stage = placing.is_added(frame), placing.stage(frame)
        call(inside, Bound(member, instance), arguments, node)
        frame.makes |= inside.makes
        return
    base = classes.torch_base(instance.cls)
    if base is not None and base.startswith("torch.nn.") and base != "torch.nn.Module":
        instance.attributes[""] = modules.build_layer(frame, base, arguments, node, inherited=True)
        return
    if classes.is_dict(instance.cls):
        instance.attributes[""] = builtins.call_builtin(frame, Builtin("dict"), arguments, node)
