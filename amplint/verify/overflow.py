"""Where inf and NaN come from: the operation whose operands were still sound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from amplint.verify.operations import floating
from amplint.verify.tensors import dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amplint.verify.operations import Operand, Operation

#: Recomputing takes twice the operands' memory: not beyond this many elements.
_MAX_RECOMPUTED = 2**27
#: After so many places the rest is consequence.
_MAX_FOUND = 64
#: Operations whose result is what memory happened to hold.
_UNSET = ("empty", "resize", "set_")
#: Operations that hand an operand's own value on.
_CARRYING = ("_to_copy", "copy_", "where", "masked_fill", "add.", "add_.", "sub.")


class Range(NamedTuple):
    """The least and the greatest element; NaN in both if there is one."""

    least: float
    greatest: float

    @property
    def nan(self) -> bool:
        return math.isnan(self.least)

    @property
    def infinite(self) -> bool:
        return math.isinf(self.least) or math.isinf(self.greatest)

    @property
    def finite(self) -> bool:
        return not (self.nan or self.infinite)


class Before(NamedTuple):
    """What must be known before an operation that writes into an operand."""

    ranges: dict[int, Range]
    copies: dict[int, torch.Tensor]


class Found(NamedTuple):
    """An operation that made inf or NaN of sound operands."""

    note: str
    constant: bool
    """A mask's constant that the dtype cannot hold became -inf, which most attention survives."""


class Watch:
    """Looks at each operation's result; ask ``before`` first, as an operand may be overwritten."""

    def __init__(self) -> None:
        self._found = 0

    def before(self, what: Operation, operands: Sequence[Operand]) -> Before:
        """The ranges, and for low dtypes copies, of the operands that the operation writes into."""
        ranges: dict[int, Range] = {}
        copies: dict[int, torch.Tensor] = {}
        if what.mutated and self._found < _MAX_FOUND:
            for i, operand in enumerate(operands):
                if operand.name.split("[")[0] in what.mutated and not operand.overwritten:
                    found = extremes(operand.tensor)
                    if found is not None:
                        ranges[i] = found
                        if found.finite and operand.tensor.numel() <= _MAX_RECOMPUTED:
                            copies[i] = operand.tensor.detach().clone()
        return Before(ranges, copies)

    def after(
        self, what: Operation, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any,
        operands: Sequence[Operand], before: Before,
    ) -> Found | None:  # fmt: skip
        """What is not finite in the result although all that went in was; None if nothing."""
        if self._found >= _MAX_FOUND or what.view or any(name in what.name for name in _UNSET):
            return None
        outputs = [(tensor, found) for tensor in floating(result) if (found := extremes(tensor)) is not None]
        if all(found.finite for _, found in outputs):
            return None
        if not any(o.tensor.is_floating_point() for o in operands) or not _finite_scalars(args, kwargs):
            return None
        inputs = [
            found
            for i, operand in enumerate(operands)
            if not operand.overwritten and (found := before.ranges.get(i) or extremes(operand.tensor)) is not None
        ]
        if any(found.nan for found in inputs):
            return None
        for tensor, found in outputs:
            if found.nan:
                self._found += 1
                source = "an infinite operand" if any(i.infinite for i in inputs) else "finite operands"
                return Found(f"NaN in {dtype_name(tensor.dtype)} from {source}", False)
        if any(found.infinite for found in inputs):
            return None
        tensor, found = next((tensor, found) for tensor, found in outputs if found.infinite)
        reached = self._recomputed(what, func, args, kwargs, operands, before)
        if reached is None:
            return None
        self._found += 1
        name = dtype_name(tensor.dtype)
        limit = torch.finfo(tensor.dtype)
        if found.greatest < math.inf and any(n in what.name for n in _CARRYING) and (
            min([*(i.least for i in inputs), *_scalars(args, kwargs)], default=0.0) < limit.min
        ):  # fmt: skip
            return Found(f"a constant below {name}'s least value ({limit.min:g}) became -inf", True)
        value = f"{reached:.6g}" if math.isfinite(reached) else "a result"
        return Found(f"overflow: {value} is beyond {name}, whose greatest value is {limit.max:g}", False)

    def _recomputed(
        self, what: Operation, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
        operands: Sequence[Operand], before: Before,
    ) -> float | None:  # fmt: skip
        """The result's largest magnitude when computed in float32; None if that is not finite either.

        An operation that draws random numbers is not repeated, as that would change the run: it counts as inf's origin.
        """
        if what.random or sum(o.tensor.numel() for o in operands) > _MAX_RECOMPUTED:
            return math.inf
        copies = {id(operands[i].tensor): copy for i, copy in before.copies.items()}
        written = {id(o.tensor) for o in operands if o.overwritten} | {
            id(o.tensor) for o in operands if o.name.split("[")[0] in what.mutated
        }

        def wide(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if not value.is_floating_point():
                    return value
                source = copies.get(id(value), value).detach()
                upcast = source.to(torch.float32) if source.dtype.itemsize < 4 else source
                return upcast.clone() if id(value) in written and upcast.data_ptr() == value.data_ptr() else upcast
            if isinstance(value, (list, tuple)):
                return type(value)(wide(item) for item in value)
            if isinstance(value, torch.dtype) and value.is_floating_point and value.itemsize < 4:
                return torch.float32
            return value

        try:
            result = func(*(wide(a) for a in args), **{name: wide(value) for name, value in kwargs.items()})
        except Exception:  # not every kernel exists in float32, nor takes these operands there
            return None
        ranges = [found for tensor in floating(result) if (found := extremes(tensor)) is not None]
        if not ranges or not all(found.finite for found in ranges):
            return None
        return max(max(abs(found.least), abs(found.greatest)) for found in ranges)


def extremes(tensor: torch.Tensor) -> Range | None:
    """The range of a floating tensor; None where it has no elements to look at."""
    if not tensor.is_floating_point() or tensor.is_meta or tensor.is_nested or tensor.layout is not torch.strided:
        return None
    if tensor.numel() == 0 or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    values = tensor.detach()
    if values.dtype.itemsize < 2:
        values = values.to(torch.float32)
    least, greatest = torch.stack(torch.aminmax(values)).tolist()
    return Range(least, greatest)


def _scalars(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[float]:
    return (float(value) for value in [*args, *kwargs.values()] if isinstance(value, float))


def _finite_scalars(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return all(math.isfinite(value) for value in _scalars(args, kwargs))
