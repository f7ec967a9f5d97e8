"""Objects of project classes that are dicts, lists of fields or registries: what indexing and ``get`` give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    DTypeValue,
    Layer,
    Mapping,
    Sequence,
    Tensor,
    Text,
    TorchName,
    Value,
)
from amplint.infer.names.classes import field_names, find_member, is_dict
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.state.dispatch import call, get_attribute
from amplint.infer.state.session import items_place
from amplint.infer.torch_model.datasets import Dataset

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.frame import Frame


def item(frame: Frame, container: Value, index: Value, node: ast.expr) -> Value:
    """``container[index]`` for one alternative of each."""
    if isinstance(container, Tensor):
        return Tensor(
            container.dtypes,
            _dimensions_left(container, index),
            container.origin,
            container.maybe,
            container.explicit,
            gradient=container.gradient,
            trait=container.trait,
            host=container.host,
        )
    if isinstance(container, Instance):
        return _instance_item(frame, container, index, node)
    if isinstance(container, Layer):
        container = container.children or UNKNOWN
    if isinstance(container, Dataset):
        return container.element
    if isinstance(container, Sequence):
        return _sequence_item(frame, container, index)
    if isinstance(container, Mapping):
        frame.reads.add(items_place(container))
        return unite(*(mapping_item(frame, container, option) for option in options_of(index)))
    return UNKNOWN


def _dimensions_left(tensor: Tensor, index: Value) -> int | None:
    """1 where indexing leaves a dimension: a slice, ``None``, or a tensor with dimensions is among the indices."""
    parts = index.items if isinstance(index, Sequence) and not index.mutable and index.items is not None else (index,)
    for part in parts:
        if isinstance(part, Builtin) and part.name == "slice" and tensor.dim != 0:
            return 1
        if part.key == NONE.key:
            return 1
        if isinstance(part, Tensor) and not part.maybe and part.dim == 1:
            return 1
    return None


def _sequence_item(frame: Frame, container: Sequence, index: Value) -> Value:
    if isinstance(index, Const) and isinstance(index.value, int):
        found = container.at(index.value)
        if found is not None or container.items is not None:
            return found or UNKNOWN
    if isinstance(index, (Sequence, Builtin)) or (isinstance(index, Const) and not isinstance(index.value, int)):
        return Sequence(None, element_of(frame.session, container), container.mutable)
    return element_of(frame.session, container)


def mapping_item(frame: Frame, container: Mapping, index: Value) -> Value:
    """A dict's value under a key: of all keys where the key is not known.

    Of a registry, a dict of functions or classes, those that are seen stand for those that are not. Which of several
    dtypes an option of the caller names is not known: whoever runs in low precision names that.
    """
    if isinstance(index, Const) and index.value in container.items:
        return container.items[index.value]
    if isinstance(index, Text) and index.usual in container.items:
        usual = container.items[index.usual]
        dtypes = {held.key for held in container.items.values() if isinstance(held, DTypeValue)}
        chosen = isinstance(usual, DTypeValue) and len(dtypes) > 1
        return frame.session.symbolic_dtype(index.usual) if chosen else usual
    if container.other is not None and not container.items:
        return container.other
    if not isinstance(index, Const) and container.items:
        seen = list(container.items.values())
        if container.other is None or all(isinstance(value, (Function, Class, TorchName)) for value in seen):
            return unite(*seen)
        return unite(*seen, container.other)
    return UNKNOWN


def _instance_item(frame: Frame, instance: Instance, index: Value, node: ast.expr) -> Value:
    if is_dict(instance.cls):
        found = _field(frame, instance, index, node)
        if found is not None:
            return found
    method = find_member(instance.cls, "__getitem__")
    if isinstance(method, Function):
        return call(frame, get_attribute(frame, instance, "__getitem__", node), Arguments([index]), node)
    stored = instance.attributes.get("")
    return item(frame, stored, index, node) if isinstance(stored, (Mapping, Layer)) else UNKNOWN


def _field(frame: Frame, instance: Instance, index: Value, node: ast.expr) -> Value | None:
    """A field of a dataclass that is a mapping too, by name or by its place among those that are set."""
    fields = [name for name in field_names(instance.cls) if name in instance.attributes]
    if not fields or not isinstance(index, Const):
        return None
    if isinstance(index.value, str):
        return instance.attributes.get(index.value)
    if not isinstance(index.value, int):
        return None
    present = [name for name in fields if options_of(instance.attributes[name]) != (NONE,)]
    if not -len(present) <= index.value < len(present):
        return None
    given = [o for o in options_of(instance.attributes[present[index.value]]) if o.key != NONE.key]
    return unite(*given)


def get(frame: Frame, instance: Instance, arguments: Arguments, node: ast.expr) -> Value:
    """``mapping.get(key, default)`` of a project class that is a mapping.

    Of a registry of functions, under a key that is not known, the default stands for the others: what one registry
    holds is called alike.
    """
    key = arguments.get(0, "key") or UNKNOWN
    default = arguments.get(1, "default") or NONE
    if not isinstance(key, Const) and isinstance(default, (Function, Class, TorchName)):
        return default
    found = _instance_item(frame, instance, key, node)
    return UNKNOWN if found is UNKNOWN else unite(found, default)
