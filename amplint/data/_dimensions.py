"""Whether the result of a call has dimensions whatever its tensors have."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._calls import Call, Failure, category_of, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHAPES = (None, (), (1,), (2,))
"""Shapes of the tensors, all of one; None: their own."""
_INTEGERS = (None, 0, -1, 1)
"""What stands for each integer, as it may name a dimension; None: itself."""
_DECIDING = ("dim", "dims", "axis", "reduction")
"""Parameters that are passed where the call leaves them out, as their defaults may be why it is refused."""
_LISTS = ("kept", "emptied", "single")
"""What stands for a list of numbers: itself, an empty one, or its first number."""
_BY_TEXT = ("equation",)
"""Parameters that say which dimensions the result has, in a language of their own."""


def always_has_dimensions(call: Call) -> bool:
    """Whether no run of the call gives a tensor without dimensions.

    It is run on tensors of no dimensions and of one, of which each sort may be refused. What refuses them may refuse
    the dimension that the call names, or the one that it stands for where none is named, so others are named too; and
    integers stand for masks.
    """
    if not any(True for _, value in call.named() for _ in tensors_in(value)) or call.given() & {*_BY_TEXT}:
        return False
    for again in _with_few_dimensions(call):
        _, out = again.output({})
        if not isinstance(out, Failure) and not all(tensor.dim() for tensor in tensors_in(out)):
            return False
    return True


def _with_few_dimensions(call: Call) -> Iterator[Call]:
    named = [name for name in _DECIDING if name in call.params and name not in call.given()]
    further = [{}, *({name: value} for name in named for value in (0, -1, 1))]
    for shape, integer, lists, masked, more in itertools.product(_SHAPES, _INTEGERS, _LISTS, (False, True), further):
        reduced = _Reduced(shape, integer, lists, masked)
        kwargs = {name: reduced.of(value) for name, value in call.kwargs.items()}
        yield replace(call, args=tuple(map(reduced.of, call.args)), kwargs={**kwargs, **more})


class _Reduced:
    """Arguments with tensors of another shape, other integers and other ``lists``; ``masked``: with integer tensors as
    bool ones."""

    def __init__(self, shape: tuple[int, ...] | None, integer: int | None, lists: str, masked: bool) -> None:
        self._shape = shape
        self._integer = integer
        self._lists = lists
        self._masked = masked

    def of(self, value: Any) -> Any:
        """The argument that takes the place of another."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if type(value) in (list, tuple):
            if self._lists != "kept" and value and all(type(item) in (int, float) for item in value):
                return self.of(value[0]) if self._lists == "single" else type(value)()
            return type(value)(map(self.of, value))
        return self._integer if self._integer is not None and type(value) is int else value

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if self._shape is not None and value.numel():
            value = value.flatten()[:1].repeat(self._shape or (1,)).reshape(self._shape)
        return value.bool() if self._masked and category_of(value.dtype) == "integer" else value
