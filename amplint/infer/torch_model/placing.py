"""Parameters and buffers: the dtypes that they have in each scenario, by where and when they are made.

What a constructor makes is converted with its module. What a method makes later comes after that, or before.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import FLOAT32, UNKNOWN_LANE, Lane
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.origins import lineage
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    DTypeValue,
    Layer,
    Made,
    Mapping,
    Origin,
    Sequence,
    Tensor,
    Value,
)
from amplint.infer.names.classes import ancestry, has_unknown_base, is_module, set_later
from amplint.infer.names.definitions import Class, Instance
from amplint.infer.names.retrofits import adds_to_given, given_to
from amplint.infer.state.frame import Stage
from amplint.infer.syntax.unchanging import replace
from amplint.infer.syntax.unregistered import plain_lists
from amplint.infer.torch_model import memories

if TYPE_CHECKING:
    from amplint.infer.lattice.dtypes import Dtypes
    from amplint.infer.state.frame import Frame


def parameter(frame: Frame, data: Value | None, node: ast.expr) -> Value:
    """``nn.Parameter(data)``: a leaf that follows the module's dtype; one without a gradient may hold whole numbers,
    which no conversion reaches."""
    tensor = next((o for o in options_of(data) if isinstance(o, Tensor)), None) if data is not None else None
    if tensor is None:
        tensor = Tensor(frame.session.unknown, 1)
    if isinstance(data, Const) and data.value is None:
        return UNKNOWN
    if frame.constructing is None and not frame.making:
        origin = replace(tensor.origin, made=None) if tensor.origin is not None else None
        if stage(frame) is Stage.BY_METHOD:
            tensor = replace(tensor, dtypes=_made(frame, tensor.dtypes, explicit=tensor.explicit))
        return replace(tensor, leaf=True, origin=origin, host=tensor.host if frame.in_module else None)
    placed = place(frame, tensor, "parameters")
    if not _is_trained(node):
        lanes = zip(tensor.dtypes, placed.dtypes, strict=True)
        placed = replace(
            placed, dtypes=tuple([UNKNOWN_LANE if made.assumed or not made.known else lane for made, lane in lanes])
        )
    if _is_default(tensor) and _is_trained(node) and is_added(frame):
        placed = _added(frame, placed)
        origin = _placed_origin(frame, tensor, placed, node, "parameter")
        return replace(placed, origin=replace(origin, made=Made.ADDED))
    return replace(placed, origin=_placed_origin(frame, tensor, placed, node, "parameter"))


def _is_default(tensor: Tensor) -> bool:
    """Whether a tensor has torch's default dtype, and no other tensor or dtype a part in it."""
    places = list(lineage(tensor.origin, 0))
    return bool(places) and places[-1].made is Made.DEFAULT and not places[-1].parents


def _is_trained(node: ast.expr) -> bool:
    """Whether ``nn.Parameter(...)`` is not told that it needs no gradient."""
    given = [*node.args[1:], *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    return not any(isinstance(value, ast.Constant) and value.value is False for value in given)


def is_added(frame: Frame) -> bool:
    """Whether what is made now is put beside a layer that was there before."""
    if not frame.in_module or frame.constructing is None:
        return False
    return frame.adding or (adds_to_given(frame.constructing.cls) and not _is_given_its_own(frame, frame.constructing))


def _is_given_its_own(frame: Frame, instance: Instance) -> bool:
    """Whether the layer that an object is given, or another object of its class was, is seen to be made by the program:
    no model was loaded then."""
    key = ("given its own", instance.cls.key)
    given = (instance.attributes.get(name) for name in given_to(instance.cls))
    if any(isinstance(value, Layer) and value.span is not None for value in given):
        frame.session.memo[key] = instance
    return key in frame.session.memo


def _added(frame: Frame, tensor: Tensor) -> Tensor:
    """A parameter made beside a layer of a loaded model: it has its own dtype where those of construction are kept."""
    lanes = tuple(
        Lane(FLOAT32) if scenario.keeps_explicit else lane
        for scenario, lane in zip(frame.session.scenarios, tensor.dtypes, strict=True)
    )
    return replace(tensor, dtypes=lanes)


def place(frame: Frame, tensor: Tensor, role: str) -> Tensor:
    """A parameter or buffer under each scenario.

    Outside a module's own code, a script that builds a model and feeds it decides the dtypes itself: nothing is
    converted behind its back.
    """
    placed = frame.session.placed(tensor, role) if frame.in_module else tensor
    if frame.in_module and (frame.constructing is not None or frame.making) and made_later(frame):
        placed = replace(placed, dtypes=_made(frame, tensor.dtypes, explicit=tensor.explicit))
    return replace(placed, host=memories.placed(frame, tensor))


def _made(frame: Frame, dtypes: Dtypes, *, explicit: bool) -> Dtypes:
    """What is made while a model runs, or by a method of it, under each scenario; a method may run before the model is
    converted."""
    running = stage(frame) is Stage.RUNNING
    lanes = zip(frame.session.scenarios, dtypes, strict=True)
    if running:
        return tuple(UNKNOWN_LANE if s.keeps_explicit and not explicit else lane for s, lane in lanes)
    return tuple(lane if s.parameters == "float32" and not s.keeps_explicit else UNKNOWN_LANE for s, lane in lanes)


def buffer(frame: Frame, data: Value | None, node: ast.expr | None = None) -> Value:
    """What ``register_buffer`` stores: follows the module's dtype if floating."""
    if data is None:
        return UNKNOWN
    values: list[Value] = []
    for option in options_of(data):
        if isinstance(option, Tensor):
            placed = place(frame, option, "buffers")
            if node is not None:
                placed = replace(placed, origin=_placed_origin(frame, option, placed, node, "buffer"))
            values.append(placed)
        else:
            values.append(option)
    return unite(*values)


def _placed_origin(frame: Frame, made: Tensor, placed: Tensor, node: ast.expr, role: str) -> Origin:
    """The constructor where the dtype is still that of it, else the place that makes it the module's own."""
    here = frame.here(node, f"{role} of the module", placed.dtypes, made.origin)
    return replace(here, placed=True, parameter=role == "parameter", kept=role == "buffer")


def layer_tensor(
    frame: Frame, dtype: Value | None, node: ast.expr, role: str, name: str, *, added: bool, moved: bool
) -> Tensor:
    """A parameter or buffer that a layer makes; ``moved``: its constructor is told a device, or may be."""
    explicit = isinstance(dtype, DTypeValue) and dtype.written
    made = dtype.dtypes if isinstance(dtype, DTypeValue) else frame.session.constant(FLOAT32)
    what = f"parameters of {name.removeprefix('torch.')}" + (" made with this dtype" if explicit else "")
    dtypes = _made(frame, made, explicit=explicit)
    if stage(frame) is Stage.RUNNING:
        origin = frame.here(node, f"{what}, made while the model runs", dtypes)
        origin = replace(origin, made=Made.WRITTEN if explicit else Made.DEFAULT)
        return Tensor(dtypes, 1, origin, explicit=explicit, host=None if moved else True)
    if made_later(frame):
        origin = frame.here(node, f"{what}, made by a method", dtypes)
        return Tensor(dtypes, 1, origin, explicit=explicit, leaf=role == "parameters")
    placed = place(frame, Tensor(made, 1, explicit=explicit), role)
    if added and dtype is None and role == "parameters":
        placed = _added(frame, placed)
        origin = frame.here(node, f"{what}, made without a dtype", placed.dtypes)
        return replace(placed, leaf=True, origin=replace(origin, placed=True, parameter=True, made=Made.ADDED))
    origin = replace(frame.here(node, what, placed.dtypes), parameter=role == "parameters")
    return replace(placed, leaf=role == "parameters", origin=origin)


def stage(frame: Frame) -> Stage:
    """When what an activation makes is made, by the conversion of the model."""
    at: Frame | None = frame
    while at is not None and (at.constructing is not None or at.making):
        if at.caller is None:
            return at.stage
        at = at.caller
    found = Stage.BEFORE
    while at is not None and at.constructing is None and not at.making:
        if at.owner is not None and is_module(at.owner):
            if getattr(at.definition, "name", "") == "forward":
                return Stage.RUNNING
            found = found if has_unknown_base(at.owner) else Stage.BY_METHOD
        at = at.caller
    return found if at is None else Stage.BEFORE


def made_later(frame: Frame) -> bool:
    """Whether a method of a module runs that its constructor is not seen to call, nor can a base that is not known:
    what it makes may be converted with the module, or be made after that."""
    return stage(frame) is not Stage.BEFORE


def moved_elsewhere(frame: Frame, tensor: Tensor, moved: Tensor) -> Tensor:
    """What is moved to a device of a parameter that a constructor made just now: no parameter, unless it lies there
    already, so no conversion of the module need reach it."""
    origin = tensor.origin
    making = frame.making or frame.constructing is not None
    if not making or not tensor.leaf or origin is None or not origin.placed or not origin.parents:
        return moved
    lanes = zip(tensor.dtypes, origin.parents[0].dtypes, moved.dtypes, strict=True)
    return replace(moved, dtypes=tuple(to if own.mask == made.mask else UNKNOWN_LANE for own, made, to in lanes))


def as_given(frame: Frame, value: Value) -> Value:
    """What a constructor stores in a plain attribute of its module: no conversion of that reaches what was given."""
    if not isinstance(value, Tensor) or value.leaf:
        return value
    lanes = zip(frame.session.scenarios, value.dtypes, strict=True)
    given = tuple(UNKNOWN_LANE if lane.assumed and s.parameters != "float32" else lane for s, lane in lanes)
    return replace(value, dtypes=given)


def as_kept(frame: Frame, instance: Instance, name: str) -> Value:
    """What an attribute holds: a tensor that the constructor left in the host's memory is there still, unless some
    other code sets the attribute. Of layers in a plain list nothing is known: no conversion of the module reaches them,
    and on a device they meet its tensors in the host's memory."""
    value = instance.attributes[name]
    if isinstance(value, (Sequence, Mapping)) and frame.constructing is not instance and is_module(instance.cls):
        return _without_layers(frame, value) if _is_unregistered(instance.cls, name) else value
    if isinstance(value, Tensor) and value.host and frame.constructing is not instance:
        kept = not instance.open and not set_later(instance.cls, name)
        return value if kept else replace(value, host=None)
    return value


def _is_unregistered(cls: Class, name: str) -> bool:
    """Whether the classes of a module make a list that nothing of theirs hands on to be registered."""
    bases = [base for base in ancestry(cls) if isinstance(base, Class)]
    if has_unknown_base(cls):
        return False
    found = [plain_lists(base.node) for base in bases]
    made = any(name in lists.made for lists in found)
    return made and not any(lists.registers or name in lists.handed for lists in found)


def _without_layers(frame: Frame, value: Sequence | Mapping) -> Value:
    """A list or dict as it is, or with items of which nothing is known where layers are among them."""
    if isinstance(value, Sequence):
        items = options_of(element_of(frame.session, value))
    else:
        items = options_of(unite(*value.items.values(), *([value.other] if value.other is not None else [])))
    if not any(isinstance(o, Layer) or (isinstance(o, Instance) and is_module(o.cls)) for o in items):
        return value
    return Sequence(None, UNKNOWN, mutable=True) if isinstance(value, Sequence) else Mapping({}, UNKNOWN)
