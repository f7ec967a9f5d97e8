"""``.half()``, ``.float()`` and ``.to(dtype)`` of modules, which convert in place.

In a constructor a conversion holds until the whole model is converted. What a method converts has the new dtype from
there on in that method; elsewhere the method may have run before or not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from amplint.infer.lattice.dtypes import FLOATS, UNKNOWN_LANE, Lane
from amplint.infer.lattice.joining import unite
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.values import UNKNOWN, DTypeValue, Layer, Mapping, Sequence, Tensor, Union, Value
from amplint.infer.names.definitions import Instance
from amplint.infer.state.dispatch import set_attribute
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.placing import made_later

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

_Change: TypeAlias = Callable[[Tensor], Tensor]


def convert(frame: Frame, module: Value, dtype: DTypeValue, node: ast.expr) -> Value:
    """Convert a module in place by the call ``node``; what the call gives."""
    at = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if isinstance(module, Layer):
        for instance in _objects_in(module):
            _convert_attributes(frame, None, instance, dtype, set())
        made = _changed(frame, module, partial(_converted, frame, dtype=dtype))
        _put(frame, at, module, made, dtype)
        return made
    if isinstance(module, Instance):
        _convert_attributes(frame, at, module, dtype, set())
        return module if _is_converted_again(frame) else UNKNOWN
    return UNKNOWN


def moved(frame: Frame, module: Value, node: ast.expr) -> Value:
    """A module after a call that may have moved it: where tensors lie that were left on the host is not known."""
    at = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if isinstance(module, Layer) and _is_left(module):
        made = _changed(frame, module, _anywhere)
        if isinstance(at, ast.Name) and frame.variables.get(at.id) is module:
            frame.bind(at.id, made)
        elif isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name):
            owner = frame.variables.get(at.value.id)
            if isinstance(owner, Instance) and owner.attributes.get(at.attr) is module:
                _may_hold(frame, owner, at.attr, made)
                frame.note(f"{at.value.id}.{at.attr}", made)
        return made
    if isinstance(module, Instance) and module is not frame.receiver:
        _move_attributes(frame, module, set())
    return module


def _move_attributes(frame: Frame, module: Instance, seen: set[int]) -> None:
    """The same of what an object holds; objects may hold each other."""
    seen.add(id(module))
    for name, value in tuple(module.attributes.items()):
        for instance in _objects_in(value):
            if id(instance) not in seen:
                _move_attributes(frame, instance, seen)
        if isinstance(value, Layer) and _is_left(value):
            module.attributes[name] = _changed(frame, value, _anywhere)
            frame.session.changed((identity(module), name))


def _objects_in(value: Value) -> Iterator[Instance]:
    """The objects of the project's classes that a value is, or that the layers in it hold."""
    return (part for part in _parts(value) if isinstance(part, Instance))


def _parts(value: Value) -> Iterator[Value]:
    """A value, what it may be, and what the layers in it hold, each once: many layers may hold one."""
    pending, seen = [value], set[int]()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Union):
            pending += part.options
        elif isinstance(part, Layer):
            pending += (*_children(part), *part.options.values())


def _children(layer: Layer) -> Iterator[Value]:
    held = layer.children
    if isinstance(held, Mapping):
        yield from (*held.items.values(), *((held.other,) if held.other is not None else ()))
    elif isinstance(held, Sequence):
        between = (held.between,) if held.between is not None else ()
        yield from held.items if held.items is not None else (held.element, *held.head, *held.tail, *between)


def _is_left(layer: Layer) -> bool:
    """Whether a tensor of a layer, or of one inside it, was left in the host's memory."""
    held = (tensor for part in _parts(layer) if isinstance(part, Layer) for tensor in part.tensors.values())
    return any(isinstance(tensor, Tensor) and tensor.host for tensor in held)


def _anywhere(tensor: Tensor) -> Tensor:
    return replace(tensor, host=None) if tensor.host else tensor


def _put(frame: Frame, at: ast.expr | None, module: Layer, made: Layer, dtype: DTypeValue) -> None:
    """Put a converted layer where it was found."""
    if isinstance(at, ast.Name) and frame.variables.get(at.id) is module:
        frame.bind(at.id, made)
    elif isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name):
        owner = frame.variables.get(at.value.id)
        if not isinstance(owner, Instance) or owner.attributes.get(at.attr) is not module:
            return
        if not made_later(frame):
            set_attribute(frame, owner, at.attr, made)
        else:
            _may_hold(frame, owner, at.attr, _changed(frame, module, partial(_either, frame, dtype=dtype)))
            frame.note(f"{at.value.id}.{at.attr}", made)


def _convert_attributes(frame: Frame, at: ast.expr | None, module: Instance, dtype: DTypeValue, seen: set[int]) -> None:
    """What an object of a project's class holds: to other methods of itself it is what it was.

    Of an object inside it nothing is known in the method that converts. Objects may hold each other.
    """
    seen.add(id(module))
    elsewhere = module is not frame.receiver and frame.constructing is not module
    for name, value in tuple(module.attributes.items()):
        if isinstance(at, ast.Name) and isinstance(value, Instance):
            frame.note(f"{at.id}.{name}", UNKNOWN)
        elif isinstance(at, ast.Name) and isinstance(value, (Layer, Tensor)):
            frame.note(f"{at.id}.{name}", _of_attribute(frame, value, partial(_converted, frame, dtype=dtype)))
        for instance in _objects_in(value) if elsewhere else ():
            if id(instance) not in seen:
                _convert_attributes(frame, None, instance, dtype, seen)
        if elsewhere and not isinstance(value, Instance):
            _may_hold(frame, module, name, _of_attribute(frame, value, partial(_either, frame, dtype=dtype)))


def _may_hold(frame: Frame, owner: Instance, name: str, value: Value) -> None:
    """Set an attribute to what it holds before a conversion as well as after it."""
    if value.key != owner.attributes[name].key:
        owner.attributes[name] = value
        frame.session.changed((identity(owner), name))


def _of_attribute(frame: Frame, value: Value, change: _Change) -> Value:
    """A layer, parameter or buffer with its tensors changed; another tensor is no part of the module's state."""
    if isinstance(value, Layer):
        return _changed(frame, value, change)
    kept = isinstance(value, Tensor) and (value.leaf or (value.origin is not None and value.origin.placed))
    return change(value) if isinstance(value, Tensor) and kept else value


def _changed(frame: Frame, layer: Layer, change: _Change) -> Layer:
    """A layer with its tensors changed, and those of the layers inside it."""
    frame.session.spend(1)

    def inside(value: Value) -> Value:
        if isinstance(value, Union):
            return unite(*map(inside, value.options))
        return _changed(frame, value, change) if isinstance(value, Layer) else value

    tensors = {name: change(v) if isinstance(v, Tensor) else v for name, v in layer.tensors.items()}
    children = layer.children
    if isinstance(children, Mapping):
        other = inside(children.other) if children.other is not None else None
        children = Mapping({name: inside(value) for name, value in children.items.items()}, other)
    elif isinstance(children, Sequence) and children.items is not None:
        children = Sequence(tuple(map(inside, children.items)), children.element, children.mutable)
    elif isinstance(children, Sequence):
        head, tail = tuple(map(inside, children.head)), tuple(map(inside, children.tail))
        between = inside(children.between) if children.between is not None else None
        children = Sequence(None, inside(children.element), children.mutable, head, tail, between=between)
    options = {name: inside(value) for name, value in layer.options.items()}
    return replace(layer, tensors=tensors, children=children, options=options)


def _is_floating(tensor: Tensor) -> bool:
    return any(lane.mask & FLOATS or not lane.mask for lane in tensor.dtypes)


def _is_converted_again(frame: Frame) -> bool:
    """Whether what is converted here is a part of a module that is being made, and is converted with it later."""
    return frame.in_module and not made_later(frame)


def _converted(frame: Frame, tensor: Tensor, dtype: DTypeValue) -> Tensor:
    """A tensor of a module that is converted; a model that is made in low precision is converted after its parts."""
    if not _is_floating(tensor):
        return tensor
    before = _is_converted_again(frame)
    lanes = []
    for scenario, lane, wanted in zip(frame.session.scenarios, tensor.dtypes, dtype.dtypes, strict=True):
        follows = before and scenario.parameters != "float32" and not scenario.keeps_explicit
        lanes.append(lane if follows else Lane(wanted.mask) if wanted.known else UNKNOWN_LANE)
    return replace(tensor, dtypes=tuple(lanes), explicit=True)


def _either(frame: Frame, tensor: Tensor, dtype: DTypeValue) -> Tensor:
    """A tensor of a module that may have been converted: its dtype is known where both are the same."""
    made = _converted(frame, tensor, dtype)
    lanes = (old if old.mask == new.mask else UNKNOWN_LANE for old, new in zip(tensor.dtypes, made.dtypes, strict=True))
    return replace(tensor, dtypes=tuple(lanes))
