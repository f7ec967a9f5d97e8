"""The table of ``torch.nn`` layers: what each holds, and which operation a call of it is.

Read from ``amplint/data/layers.json``, which ``amplint.data.generate_layers`` makes by running torch.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from amplint.data import read_table
from amplint.frozen import dataclass
from amplint.infer.lattice.values import Const, Value
from amplint.infer.torch_model.torch_ops import Op, find_op, op_of, support_of, with_kernels

PARAMETERS = "parameters"
"""The operand that stands for all tensors of a layer that has many."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The tensors of a layer where an option is unlike its default: ``value`` is its text, or ``tensor``."""

    option: str
    value: str
    missing: tuple[str, ...]
    more: tuple[str, ...]

    def holds(self, options: dict[str, Value]) -> bool:
        """Whether the constructor's arguments say so."""
        given = options.get(self.option)
        if given is None:
            return False
        if self.value == "tensor":
            return not (isinstance(given, Const) and given.value is None)
        return isinstance(given, Const) and str(given.value) == self.value


@dataclass(frozen=True, slots=True)
class LayerClass:
    """One layer class.

    ``init``: parameters of the constructor, in order. ``parameters``, ``buffers``: names of the tensors that it holds,
    ``integers`` of them with an integer dtype. ``inner``: attributes that are layers, by class. ``call``: what calling
    it does, as an operation whose operands are the arguments, then the tensors. ``forward``: names of the arguments.
    ``asks``: options of the constructor that the result depends on. ``passes``: it gives what it is given.
    """

    name: str
    init: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    integers: tuple[str, ...]
    otherwise: tuple[Otherwise, ...]
    inner: tuple[tuple[str, str], ...]
    call: Op | None
    forward: tuple[str, ...]
    asks: tuple[str, ...]
    passes: bool

    def tensor_names(self, options: dict[str, Value]) -> list[str]:
        """Names of the tensors that a layer constructed with these options holds."""
        names = [*self.parameters, *self.buffers]
        for other in self.otherwise:
            if other.holds(options):
                names = [name for name in names if name not in other.missing]
                names += [name for name in other.more if name not in names]
        return names

    def is_buffer(self, name: str) -> bool:
        """Whether a tensor is no parameter: it is listed as a buffer, or handed to the constructor."""
        return name in self.buffers or (name not in self.parameters and name in self.init)


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    layers: dict[str, dict[str, Any]] = read_table("layers.json")["ops"]
    return layers


@cache
def find_layer(name: str) -> LayerClass | None:
    """The layer class of a qualified name such as ``torch.nn.Linear``."""
    short = name.removeprefix("torch.nn.")
    row = _table().get(short)
    if row is None:
        return None
    init = tuple(row["init"])
    if "like" in row:
        row = _table()[row["like"]]
    tensors = [*row.get("parameters", ()), *row.get("buffers", ())]
    call = _call(name, row)
    held = {*tensors, PARAMETERS, *(n for names in row.get("if", {}).values() for n in names)}
    return LayerClass(
        name=name,
        init=init,
        parameters=tuple(row.get("parameters", ())),
        buffers=tuple(row.get("buffers", ())),
        integers=tuple(row.get("integers", ())),
        otherwise=tuple(_otherwise(text, names, tensors) for text, names in row.get("if", {}).items()),
        inner=tuple(row.get("inner", {}).items()),
        call=call,
        forward=tuple(p for p in call.params if p not in held) if call is not None else (),
        asks=tuple({need.partition("=")[0] for case in call.cases for need in case.needs}) if call is not None else (),
        passes=call is not None and call.passes,
    )


def _otherwise(text: str, names: list[str], tensors: list[str]) -> Otherwise:
    option, _, value = text.partition("=")
    missing = tuple(name for name in tensors if name not in names)
    return Otherwise(option, value, missing, tuple(name for name in names if name not in tensors))


def _call(name: str, row: dict[str, Any]) -> Op | None:
    """A call as an operation: under the name of the one that it applies, unless its tensors go together there.

    It lacks the kernels that the one that it applies lacks.
    """
    entry = row.get("call")
    if entry is None:
        return None
    together = f"{PARAMETERS}*" in entry["tensors"]
    applied = find_op(row.get("applies", ""))
    entry = {**support_of(row.get("applies", "")), **entry}
    return with_kernels(op_of(applied.name if applied is not None and not together else name, entry), name, entry)
