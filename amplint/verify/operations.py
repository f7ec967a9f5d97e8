"""What a dispatched operation is and is given: its operands with their names, and what it did to their dtypes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amplint.verify.event import Kind

_CASTS = {"aten::_to_copy", "prims::convert_element_type"}


class Operand(NamedTuple):
    """A tensor argument under its schema name (``tensors[1]`` in a list)."""

    name: str
    tensor: torch.Tensor
    overwritten: bool
    """What it held before does not matter: an ``out=`` tensor, or the target of ``copy_``."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What the schema says, looked up once an overload."""

    name: str
    """``aten.add.Tensor``."""
    overload: str
    """The dispatcher's name, ``aten::add.Tensor``; empty for a higher-order operator."""
    arguments: tuple[str, ...]
    overwritten: frozenset[str]
    mutated: frozenset[str]
    view: bool
    random: bool
    cast: bool
    lists: bool
    """Works on lists element by element (``_foreach_*``), whose dtypes need not agree."""

    def operands(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Operand]:
        """The tensors among the arguments, in order."""
        names = [*self.arguments[: len(args)], *(str(i) for i in range(len(self.arguments), len(args)))]
        return [
            Operand(label, tensor, name in self.overwritten)
            for name, value in [*zip(names, args, strict=True), *kwargs.items()]
            for label, tensor in _labelled(name, value)
        ]


@functools.cache
def operation(func: Any) -> Operation:
    """The facts of an overload; of a higher-order operator, which has no schema, only its name."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Operation(str(func), "", (), frozenset(), frozenset(), False, True, False, False)
    written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    overwritten = {a.name for a in schema.arguments if a.is_out}
    if schema.name == "aten::copy_":
        overwritten.add("self")
    alias = [r.alias_info for r in schema.returns]
    return Operation(
        name=str(func),
        overload=func.name(),
        arguments=tuple(a.name for a in schema.arguments),
        overwritten=frozenset(overwritten),
        mutated=frozenset(written),
        view=any(a is not None and not a.is_write for a in alias),
        random=torch.Tag.nondeterministic_seeded in func.tags,
        cast=schema.name in _CASTS,
        lists=schema.name.startswith(("aten::_foreach", "aten::_fused_", "aten::_amp_foreach")),
    )


def autocast_overloads(device: str) -> frozenset[str]:
    """The overloads (``aten::add.Tensor``) that the device's autocast has a kernel for at present."""
    key = f"Autocast{device.upper()}"
    names: list[str] = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return frozenset(n for n in names if not torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough(n, key))


def _labelled(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                yield f"{name}[{i}]", item


def floating(value: Any) -> Iterator[torch.Tensor]:
    """The floating tensors of an operation's result, lists included."""
    return (tensor for _, tensor in _labelled("", [value] if isinstance(value, torch.Tensor) else value)
            if tensor.is_floating_point())  # fmt: skip


def shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The sizes; a nested tensor has none that can be told, and gives an empty shape."""
    return () if tensor.is_nested else tuple(int(size) for size in tensor.shape)


def size(tensor: torch.Tensor) -> int:
    """Bytes of the elements."""
    return int(tensor.numel()) * int(tensor.element_size())


def effect(
    what: Operation, operands: Sequence[Operand], output: torch.Tensor | None, before: Sequence[torch.dtype]
) -> tuple[Kind, int] | None:
    """What an operation other than a cast did to dtypes, and the bytes that promotion cost; None where it says nothing.

    Args:
        what: The operation.
        operands: Its tensors.
        output: Its first floating result.
        before: The operands' dtypes before it ran.
    """
    if what.view:
        return None
    involved = [(o.tensor, dtype) for o, dtype in zip(operands, before, strict=True) if dtype.is_floating_point]
    if not involved:
        return ("created", 0) if output is not None else None
    if output is None:
        return None
    dtypes = {dtype for _, dtype in involved}
    if len(dtypes) > 1 and not what.lists:
        dimensioned = {dtype for tensor, dtype in involved if tensor.dim() > 0}
        if len(dimensioned) == 1 and output.dtype in dimensioned:
            return "kept", 0  # a 0-dim tensor does not take part in promotion beside a dimensioned one
        least = min(dtype.itemsize for dtype in dimensioned or dtypes)
        if not what.mutated and output.dtype.itemsize > least:
            return "promotion", output.numel() * (output.dtype.itemsize - least)
        return "mixed", 0
    if output.dtype not in dtypes:
        return "op-output", 0
    return "kept", 0
