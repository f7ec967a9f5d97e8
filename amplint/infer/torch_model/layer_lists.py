"""``nn.Sequential``, ``nn.ModuleList`` and their like: the layers that they hold, what running these in order gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.joining import element_of, options_of, unite
from amplint.infer.lattice.values import NONE, UNKNOWN, Const, Layer, Mapping, Sequence, Value
from amplint.infer.names.classes import has_unknown_base, is_module, torch_base
from amplint.infer.names.definitions import Instance
from amplint.infer.state.dispatch import call
from amplint.infer.state.frame import Frame, grown
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    import ast

SEQUENTIAL = "torch.nn.Sequential"
PASSES = 3
"""Times that layers of an unknown number are run on what they gave before."""


def children(name: str, arguments: Arguments) -> Value:
    """What a container of that qualified name holds, made with these arguments: a sequence, or a mapping by name."""
    first = arguments.positional[0] if arguments.positional else None
    if name == SEQUENTIAL:
        if isinstance(first, Mapping):
            return _in_order(first)
        if arguments.unknown:
            return _spread(arguments)
        return Sequence(tuple(arguments.positional))
    if name in ("torch.nn.ModuleList", "torch.nn.ParameterList"):
        if first is None:
            return Sequence((), mutable=True)
        return replace(first, mutable=True) if isinstance(first, Sequence) else Sequence(None, UNKNOWN, True)
    if first is None:
        return Mapping({})
    return Mapping(dict(first.items), first.other) if isinstance(first, Mapping) else Mapping({}, UNKNOWN)


def _spread(arguments: Arguments) -> Sequence:
    """Layers of which some are passed behind a ``*``."""
    first, spread = tuple(arguments.positional), arguments.spread
    element = arguments.rest or UNKNOWN
    if spread is None:
        return Sequence(None, unite(element, *first), head=first)
    head = (*first, *spread.head)
    return Sequence(None, unite(element, *first), head=head, tail=spread.tail, between=spread.middle)


def _in_order(mapping: Mapping) -> Sequence:
    values = [*mapping.items.values(), *([mapping.other] if mapping.other else [])]
    if mapping.other is None and not mapping.loose:
        return Sequence(tuple(values))
    return Sequence(None, unite(*values) if values else UNKNOWN)


def run(frame: Frame, layers: Value | None, arguments: Arguments, node: ast.expr) -> Value:
    """What layers run one after another give; of those whose number is not known, any may run any number of times."""
    if not isinstance(layers, Sequence):
        return UNKNOWN
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    nodes = dict(arguments.nodes)
    for child in layers.items if layers.items is not None else layers.head:
        frame.session.spend(1)
        value = call(frame, child, Arguments([value], {}, nodes), node)
        nodes = {}
    if layers.items is not None:
        return value
    choices = options_of(layers.middle)
    start: Value | None = value if layers.head else None
    for _ in range(PASSES):
        frame.session.spend(len(choices))
        made = unite(*(call(frame, choice, Arguments([value]), node) for choice in choices))
        reached = made if start is None else unite(start, made)
        if reached.key == value.key:
            break
        start = value = reached
    for child in layers.tail:
        value = call(frame, child, Arguments([value]), node)
    return value


def grow(frame: Frame, receiver: Layer, item: Value, *, once: bool) -> None:
    """Append a layer, or several alike, to a container."""
    held = receiver.children
    if isinstance(held, Sequence):
        if once:
            changed = grown(frame, held, item, variable=False)
        else:
            element = item if held.items == () else unite(element_of(frame.session, held), item)
            changed = Sequence(None, element, True)
        object.__setattr__(receiver, "children", changed)


def add(frame: Frame, receiver: Layer, name: Value | None, module: Value) -> None:
    """Put a module into a container, behind the others or under a name."""
    held = receiver.children
    if isinstance(held, Mapping):
        known = name.value if isinstance(name, Const) else None
        held.update(Mapping({known: module}) if isinstance(known, str) else Mapping({}, module))
    else:
        grow(frame, receiver, module, once=True)


def register(frame: Frame, owner: Instance, name: str, new: Value) -> None:
    """A module assigned to an attribute of an object that is an ``nn.Sequential`` itself is its next layer."""
    layer = owner.attributes.get("")
    if not isinstance(layer, Layer) or layer.name != SEQUENTIAL or not any(map(_may_be_layer, options_of(new))):
        return
    if name in owner.attributes:
        if isinstance(layer.children, Sequence):
            element = unite(element_of(frame.session, layer.children), new)
            object.__setattr__(layer, "children", Sequence(None, element, True))
    else:
        grow(frame, layer, new, once=True)


def register_any(frame: Frame, owner: Instance, new: Value) -> None:
    """A module under a name that is not known, of an object that is an ``nn.Sequential`` itself: one of its layers."""
    layer = owner.attributes.get("")
    if isinstance(layer, Layer) and layer.name == SEQUENTIAL and any(map(_may_be_layer, options_of(new))):
        grow(frame, layer, new, once=False)


def iterated(frame: Frame, value: Value) -> Value:
    """What a loop over a value runs over: the list in a container, any of several that it may be; None is none."""
    options = [option for option in options_of(value) if option.key != NONE.key]
    runs = [o.children if isinstance(o, Layer) and isinstance(o.children, Sequence) else o for o in options]
    if len(runs) == 1:
        return runs[0]
    lists = [run for run in runs if isinstance(run, Sequence)]
    if len(lists) < len(runs) or not lists:
        return value
    elements = [element_of(frame.session, run) for run in lists if run.items != ()]
    return Sequence(None, unite(*elements)) if elements else lists[0]


def held_by(layer: Layer) -> Value:
    """``layer.children()`` of a container: what it holds, in order."""
    held = layer.children
    if isinstance(held, Sequence):
        return replace(held, mutable=False)
    return _in_order(held) if isinstance(held, Mapping) else UNKNOWN


def is_layer_of(value: Layer | Instance, name: str) -> bool | None:
    """Whether a module is an instance of a ``torch.nn`` class, by qualified name; None where that is not known."""
    own = value.name if isinstance(value, Layer) else torch_base(value.cls)
    if own == name or (name == ANY and own is not None and own.startswith("torch.nn.")):
        return True
    closed = value.name != ANY if isinstance(value, Layer) else not has_unknown_base(value.cls)
    return False if closed and name in _CONTAINERS else None


ANY = "torch.nn.Module"
"""The class of a layer of which it is known that it is one, and nothing else."""
_CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))


def _may_be_layer(value: Value) -> bool:
    return value is UNKNOWN or isinstance(value, Layer) or (isinstance(value, Instance) and is_module(value.cls))
