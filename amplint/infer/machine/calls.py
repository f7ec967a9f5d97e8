"""Calls: what is called, and what that makes of the arguments."""

from __future__ import annotations

import ast
import builtins as python

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutocastContext, AutogradContext
from amplint.infer.lattice.decorators import CustomDecorator, Decorated
from amplint.infer.lattice.dtypes import AUTOCASTABLE, OFF
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    External,
    Layer,
    Mapping,
    Partial,
    Sequence,
    Tensor,
    TensorMethod,
    TorchName,
    Union,
    Value,
)
from amplint.infer.machine import builtins, choices, containers, objects
from amplint.infer.machine.own_calls import call_around
from amplint.infer.machine.running import carries_tensor, may_carry_tensor, run_function
from amplint.infer.names import classes, texts
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.state.dispatch import call, evaluate
from amplint.infer.state.frame import Frame, grown
from amplint.infer.state.session import Applied
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import autocast, modules, optimizers, siblings, tensors, torch_calls, versions
from amplint.infer.torch_model.attention_kernels import find_kernel
from amplint.infer.torch_model.extensions import handed_over
from amplint.infer.torch_model.torch_ops import find_op
from amplint.infer.torch_model.unknown_mates import MODULE, into_unknown


def call_value(frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> Value:
    """The result of calling a value; unknown for what cannot be followed."""
    outer, frame.calling = frame.calling, node
    try:
        result = _call(frame, callee, arguments, node)
    finally:
        frame.calling = outer
    if result is UNKNOWN and frame.session.recorder.in_function and _may_compute(frame, callee, arguments, node):
        frame.session.recorder.unsettled()
    return result


def _may_compute(frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> bool:
    """Whether what is called, and not known, may compute with a tensor."""
    if isinstance(callee, Builtin):
        kind, _, name = callee.name.partition(".")
        return kind == "unknown" and find_op(f"torch.Tensor.{name}", frame.session.torch_version) is None
    if callee is UNKNOWN and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        bound = node.func.id in frame.variables or node.func.id in frame.closure
        return (bound or not hasattr(python, node.func.id)) and may_carry_tensor(arguments)
    return may_carry_tensor(arguments)


def _call(frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> Value:
    if isinstance(callee, Builtin):
        return _call_builtin(frame, callee, arguments, node)
    if isinstance(callee, TorchName):
        return torch_calls.call_torch(frame, callee, arguments, node)
    if isinstance(callee, TensorMethod):
        if callee.name == "forward":
            into_unknown(frame, arguments, node)
        return tensors.call_method(frame, callee, arguments, node)
    if isinstance(callee, Bound):
        return run_function(
            frame, callee.function, arguments.shifted((callee.instance, None)), receiver=callee.instance
        )
    if isinstance(callee, Function):
        return run_function(frame, callee, arguments)
    if isinstance(callee, Layer):
        if callee.name == MODULE:
            into_unknown(frame, arguments, node)
        return modules.call_layer(frame, callee, arguments, node)
    if isinstance(callee, Instance):
        return _call_instance(frame, callee, arguments, node)
    if isinstance(callee, Class):
        return objects.instantiate(frame, callee, arguments, node)
    if isinstance(callee, Decorated):
        return _call_decorated(frame, callee, arguments, node)
    if isinstance(callee, Partial):
        shifted = arguments.shifted(*((value, None) for value in callee.args))
        shifted.keywords = {**callee.keywords, **shifted.keywords}
        return call(frame, callee.callee, shifted, node)
    if isinstance(callee, Union):
        return _call_any(frame, callee, arguments, node)
    if isinstance(callee, (AutocastContext, CustomDecorator)):
        if arguments.positional:
            return objects.decorate_with(callee, arguments.positional[0]) or UNKNOWN
        return UNKNOWN
    if isinstance(callee, External):
        if find_kernel(callee.name) is None:
            handed_over(frame, node, callee.name, arguments)
        return builtins.call_external(frame, callee, arguments, node)
    siblings.launch(frame, arguments, node)
    into_unknown(frame, arguments, node)
    return _call_unknown(frame, arguments, node)


def _call_unknown(frame: Frame, arguments: Arguments, node: ast.expr) -> Value:
    """Call what is not known: given a module or method before tensors, it calls that with them, as checkpointing does.

    Which function checkpoints is often handed to a model from outside.
    """
    called, rest = arguments.positional[:1], arguments.positional[1:]
    if not called or not any(map(carries_tensor, rest)):
        return UNKNOWN
    if not all(_takes_tensors(option) for option in options_of(called[0])):
        return UNKNOWN
    nodes: dict[int | str, ast.expr] = {
        (key - 1 if isinstance(key, int) else key): expression
        for key, expression in arguments.nodes.items()
        if key != 0
    }
    return call(frame, called[0], Arguments(rest, arguments.keywords, nodes, arguments.unknown), node)


def _takes_tensors(value: Value) -> bool:
    """Whether a value is a module, or a method of one."""
    if isinstance(value, Bound):
        value = value.instance
    return isinstance(value, Layer) or (isinstance(value, Instance) and classes.is_module(value.cls))


def _call_any(frame: Frame, callee: Union, arguments: Arguments, node: ast.expr) -> Value:
    """Call one of several: what does not come back, or cannot be called like this, was not the one."""
    live, reached, path, raised, ends = frame.live, 0, frame.path, frame.raised, 0
    results: list[Value] = []
    paths: list[tuple[int, ...]] = []
    callable_ones = [option for option in callee.options if option.key != NONE.key]
    fitting = [option for option in callable_ones if _accepts(option, arguments)]
    for option in fitting or callable_ones:
        chosen = choices.way(frame, node.func, option) if isinstance(node, ast.Call) else None
        frame.live, frame.path, frame.raised = live, (*path, chosen or identity(option)), raised
        result = call(frame, option, arguments, node)
        if frame.live:
            results.append(result)
            paths.append(frame.path)
        reached |= frame.live
        ends |= frame.live & ~frame.raised
    frame.live, frame.path, frame.raised = reached, path, reached & ~ends
    if paths:
        frame.session.recorder.branches_met(frame, *paths)
    if frame.session.assumptions.usual:
        results = [result for result in results if _is_tensor(result)] or results
    return unite(*results) if results else UNKNOWN


def _is_tensor(value: Value) -> bool:
    """Whether it is a tensor whose dtype is known, or a tuple that has one."""
    if isinstance(value, Sequence) and value.items:
        return any(map(_is_tensor, value.items))
    return isinstance(value, Tensor) and all(lane.mask for lane in value.dtypes)


def _accepts(value: Value, arguments: Arguments) -> bool:
    """Whether a module or function has parameters for these arguments; true where that is not known."""
    bound = 0
    if isinstance(value, Instance):
        member = classes.find_member(value.cls, "forward" if classes.is_module(value.cls) else "__call__")
        value, bound = member if member is not None else UNKNOWN, 1
    elif isinstance(value, Bound):
        value, bound = value.function, 1
    if not isinstance(value, Function):
        return True
    spec = value.node.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)][bound:]
    if spec.vararg is None and len(arguments.positional) > len(positional):
        return False
    names = {*positional, *(a.arg for a in spec.kwonlyargs)}
    return spec.kwarg is not None or names.issuperset(arguments.keywords)


def _call_builtin(frame: Frame, callee: Builtin, arguments: Arguments, node: ast.expr) -> Value:
    kind, _, name = callee.name.partition(".")
    if kind == "text" and callee.receiver is not None:
        return _of_torch(frame, callee.receiver, texts.call_method(callee.receiver, name, arguments))
    if kind == "unknown":
        into_unknown(frame, arguments, node)
        return tensors.unknown_method(frame, name, arguments, node)
    if kind == "module" and callee.receiver is not None:
        return modules.call_module_method(frame, callee.receiver, name, arguments, node)
    if kind == "ctx" and isinstance(callee.receiver, AutogradContext):
        if name == "save_for_backward":
            callee.receiver.saved = Sequence(tuple(arguments.positional))
        return NONE
    if callee.name == "dict.get" and isinstance(callee.receiver, Instance):
        return containers.get(frame, callee.receiver, arguments, node)
    if callee.name == "__getitem__" and isinstance(callee.receiver, (Mapping, Sequence)) and arguments.positional:
        return containers.item(frame, callee.receiver, arguments.positional[0], node)
    if callee.name == "autograd.apply" and isinstance(callee.receiver, Class):
        handed_over(frame, node, f"{callee.receiver.name}.apply", arguments)
        _note_application(frame, callee.receiver, arguments, node)
        return apply_autograd(frame, callee.receiver, arguments, AutogradContext())
    if callee.name == "super.__init__" and isinstance(callee.receiver, Instance):
        base = classes.torch_base(callee.receiver.cls)
        if base is not None and base.startswith("torch.nn.") and base != "torch.nn.Module":
            callee.receiver.attributes[""] = modules.build_layer(frame, base, arguments, node, inherited=True)
        elif classes.is_dict(callee.receiver.cls):
            callee.receiver.attributes[""] = builtins.call_builtin(frame, Builtin("dict"), arguments, node)
        elif classes.is_optimizer(callee.receiver.cls):
            callee.receiver.attributes[optimizers.DEFAULTS] = arguments.get(1, optimizers.DEFAULTS) or UNKNOWN
        return NONE
    if isinstance(callee.receiver, Sequence) and name == "" and kind in ("append", "extend", "insert"):
        return _grow_list(frame, callee, arguments, node)
    return builtins.call_builtin(frame, callee, arguments, node)


def _of_torch(frame: Frame, text: Value, answer: Value) -> Value:
    """What a method of a string gives; an answer about a version is torch's own."""
    if not isinstance(text, versions.Version) or not isinstance(answer, Const) or not isinstance(answer.value, bool):
        return answer
    return versions.answer(frame.session, holds=answer.value)


def _grow_list(frame: Frame, callee: Builtin, arguments: Arguments, node: ast.expr) -> Value:
    """``name.append(x)`` rebinds the variable, since sequences are immutable here."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and arguments.positional:
        target, receiver = node.func.value, callee.receiver
        item = arguments.positional[-1]
        assert isinstance(receiver, Sequence)
        if callee.name == "append":
            changed = grown(frame, receiver, item, variable=isinstance(target, ast.Name))
        else:
            if callee.name == "extend" and isinstance(item, Sequence):
                item = element_of(frame.session, item)
            joined = item if receiver.items == () else unite(element_of(frame.session, receiver), item)
            changed = Sequence(None, joined, True)
        if isinstance(target, ast.Name):
            frame.bind(target.id, changed)
        elif isinstance(target, ast.Attribute):
            objects.set_attribute(frame, evaluate(frame, target.value), target.attr, changed)
    return NONE


def _call_instance(frame: Frame, instance: Instance, arguments: Arguments, node: ast.expr) -> Value:
    around = call_around(frame, instance, arguments, node)
    if around is not None:
        return around
    name = "forward" if classes.is_module(instance.cls) else "__call__"
    method = objects.get_attribute(frame, instance, name, node)
    if method is UNKNOWN or isinstance(method, Instance):
        layer = instance.attributes.get("")
        return call(frame, layer, arguments, node) if isinstance(layer, Layer) else UNKNOWN
    return call(frame, method, arguments, node)


def _call_decorated(frame: Frame, callee: Decorated, arguments: Arguments, node: ast.expr) -> Value:
    if callee.kind == "opaque":
        return UNKNOWN
    if callee.wrapper is not None:
        result = call(frame, callee.wrapper, arguments, node)
        return result if result is not UNKNOWN else call(frame, callee.function, arguments, node)
    saved, region = frame.autocast, frame.region
    if callee.autocast is not None:
        autocast.enter(frame, callee.autocast)
    elif callee.cast_inputs is not None:
        arguments = cast_inputs(frame, arguments, callee)
        frame.autocast = tuple(OFF for _ in frame.autocast)
    result = call(frame, callee.function, arguments, node)
    frame.autocast, frame.region = saved, region
    return result


def cast_inputs(frame: Frame, arguments: Arguments, callee: Decorated) -> Arguments:
    """``custom_fwd(cast_inputs=…)`` under autocast: floating tensors are cast, those in lists and dicts too; outside it
    nothing happens."""
    dtype = callee.cast_inputs
    assert dtype is not None

    def cast(value: Value) -> Value:
        if isinstance(value, Sequence):
            items = tuple(map(cast, value.items)) if value.items is not None else None
            head, tail = tuple(map(cast, value.head)), tuple(map(cast, value.tail))
            return Sequence(items, cast(value.element), value.mutable, head, tail, value.made)
        if isinstance(value, Mapping):
            held = {key: cast(item) for key, item in value.items.items()}
            return replace(value, items=held, other=cast(value.other) if value.other is not None else None)
        if not isinstance(value, Tensor):
            return value
        lanes = tuple(
            wanted if state.on and (lane.mask & AUTOCASTABLE or not lane.mask) else lane
            for lane, wanted, state in zip(value.dtypes, dtype.dtypes, frame.autocast, strict=True)
        )
        return replace(value, dtypes=lanes)

    left = _left_alone(callee, arguments)
    positional = [v if at in left else cast(v) for at, v in enumerate(arguments.positional)]
    keywords = {name: v if name in left else cast(v) for name, v in arguments.keywords.items()}
    return Arguments(positional, keywords, arguments.nodes, arguments.unknown)


def _left_alone(callee: Decorated, arguments: Arguments) -> set[int | str]:
    """Which arguments a decorator does not cast, by position and name."""
    function: Value = callee
    while isinstance(function, Decorated):
        function = function.function
    bound = isinstance(function, Bound)
    function = function.function if isinstance(function, Bound) else function
    if callee.casts is None or not isinstance(function, Function):
        return set()
    spec = function.node.args
    names = [parameter.arg for parameter in (*spec.posonlyargs, *spec.args)][bound:]
    beyond = range(len(names), len(arguments.positional))
    return {
        *(at for at, name in enumerate(names) if name not in callee.casts),
        *beyond,
        *(name for name in arguments.keywords if name not in callee.casts),
    }


MAX_APPLIED = 6
"""Calls of one autograd Function that are looked at."""


def _note_application(frame: Frame, cls: Class, arguments: Arguments, node: ast.expr) -> None:
    """Note how a Function of the same file is applied, as far as autocast may act on it: by a module, or by what keeps
    autocast from it."""
    applied = Applied(node, arguments, frame.autocast, frame.live)
    kept = not applied.lanes and (frame.region or any(state.on for state in frame.autocast))
    if not (frame.in_module or kept) or frame.backward:
        return
    if not frame.namespace.own or cls.namespace is not frame.namespace:
        return
    tensors = [value for value in arguments.positional if isinstance(value, Tensor)]
    told = tensors and not arguments.unknown and UNKNOWN not in arguments.positional
    known = told and all(tensor.dtypes[number].known for tensor in tensors for number in applied.lanes)
    seen = frame.session.applied.setdefault(id(cls.node), {})
    key = (id(node), tuple(tensor.dtypes for tensor in tensors))
    if key not in seen and len(seen) <= MAX_APPLIED:
        seen[key] = applied if known or not applied.lanes else None  # nothing is rounded where autocast is off


def apply_autograd(frame: Frame, cls: Class, arguments: Arguments, context: AutogradContext) -> Value:
    """``Function.apply(...)``: run forward with a context."""
    member = classes.find_member(cls, "forward")
    if member is None:
        return UNKNOWN
    function: Value = member
    while isinstance(function, Decorated) and function.kind in ("static", "class"):
        function = function.function
    inputs = arguments.shifted(*((value, None) for value in leading_arguments(cls, "forward", context)))
    siblings.enter_function(frame, function, inputs, cls.name)
    return call(frame, function, inputs, cls.node.bases[0] if cls.node.bases else ast.Name(cls.name))


def leading_arguments(cls: Class, method: str, context: AutogradContext) -> list[Value]:
    """What torch gives ``forward`` or ``backward`` before the inputs or gradients: the class, where it is a method of
    that, and the context, unless ``setup_context`` gets it instead."""
    function = classes.find_member(cls, method)
    while isinstance(function, Decorated) and function.kind != "class":
        function = function.function
    styled = method == "forward" and classes.find_member(cls, "setup_context") is not None
    return [*((cls,) if isinstance(function, Decorated) else ()), *(() if styled else (context,))]
