"""Descriptions of values: small, comparable, and made afresh on every call."""

from __future__ import annotations

import copy
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True)
class Const:
    """A plain value, copied each time."""

    value: Any

    @property
    def key(self) -> str:
        return f"{type(self.value).__name__}:{self.value!r}"


@dataclass(frozen=True)
class Tensor:
    """A tensor of ``shape``. ``kind``: float (normal, float32), unit (float32 between 0 and 1), long (below ``high``),
    bool (true, but for the last of several in the last dimension), complex, int8."""

    shape: tuple[int, ...]
    kind: str = "float"
    high: int = 2

    def shaped(self, shape: Iterable[int]) -> Tensor:
        """A tensor of the same kind in another shape."""
        return replace(self, shape=tuple(shape))

    @property
    def key(self) -> str:
        return f"{self.kind}{list(self.shape)}<{self.high if self.kind == 'long' else ''}"


@dataclass(frozen=True)
class Items:
    """A list or tuple of specs; with ``names`` a dict, or an object of another class made of them."""

    kind: type
    items: tuple[Spec, ...]
    names: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.kind.__name__}{self.names}[{','.join(item.key for item in self.items)}]"


@dataclass(frozen=True)
class Make:
    """Something that has to be constructed; ``label`` says what, and tells it apart."""

    label: str
    call: Callable[[], Any] = field(compare=False)

    @property
    def key(self) -> str:
        return self.label


Spec = Const | Tensor | Items | Make
Plan = dict[str, Spec]


Repair = tuple[float, Plan]
"""A plan to try, and what it costs: the smaller, the likelier."""


def each(plan: Plan, name: str, specs: Iterable[Spec], cost: float, step: float) -> Iterator[Repair]:
    """``plan`` with each of ``specs`` for a parameter, the later the dearer."""
    for index, spec in enumerate(specs):
        yield cost + step * index, {**plan, name: spec}


def plan_key(plan: Plan) -> str:
    """What tells one plan from another."""
    return ";".join(f"{name}={plan[name].key}" for name in sorted(plan))


def realise(
    spec: Spec, generator: torch.Generator | None = None, path: str = "", noted: dict[str, torch.Tensor] | None = None
) -> Any:
    """The value that ``spec`` describes. Tensors come from ``generator``, in an explicit dtype.

    ``noted`` gets the tensors by their paths as :func:`tensors_of` has them, ``path`` being that of ``spec``.
    """
    if isinstance(spec, Const):
        return spec.value if callable(spec.value) else copy.deepcopy(spec.value)
    if isinstance(spec, Make):
        return spec.call()
    if isinstance(spec, Tensor):
        tensor = _tensor(spec, generator)
        if noted is not None:
            noted[path] = tensor
        return tensor
    items = [realise(item, generator, f"{path}.{index}", noted) for index, item in enumerate(spec.items)]
    if spec.kind is dict:
        return dict(zip(spec.names, items, strict=True))
    return spec.kind(**dict(zip(spec.names, items, strict=True))) if spec.names else spec.kind(items)


def tensors_of(plan: Plan) -> dict[str, Tensor]:
    """The tensors in ``plan`` by path: ``x``, and ``states.0`` within a list."""
    found: dict[str, Tensor] = {}

    def walk(path: str, spec: Spec) -> None:
        if isinstance(spec, Tensor):
            found[path] = spec
        elif isinstance(spec, Items):
            for index, item in enumerate(spec.items):
                walk(f"{path}.{index}", item)

    for name, spec in plan.items():
        walk(name, spec)
    return found


def replaced(plan: Plan, path: str, spec: Spec) -> Plan:
    """``plan`` with another spec at ``path``."""
    name, *rest = path.split(".")
    return {**plan, name: _replaced(plan[name], [int(index) for index in rest], spec)}


def _replaced(old: Spec, path: list[int], new: Spec) -> Spec:
    if not path or not isinstance(old, Items):
        return new
    items = list(old.items)
    items[path[0]] = _replaced(items[path[0]], path[1:], new)
    return replace(old, items=tuple(items))


def _tensor(spec: Tensor, generator: torch.Generator | None) -> torch.Tensor:
    if spec.kind == "long":
        return torch.randint(0, max(spec.high, 1), spec.shape, generator=generator)
    if spec.kind == "int8":
        return torch.randint(-128, 128, spec.shape, generator=generator, dtype=torch.int8)
    if spec.kind == "bool":
        return _mask(spec.shape)
    if spec.kind == "complex":
        return torch.randn(spec.shape, generator=generator, dtype=torch.complex64)
    draw = torch.rand if spec.kind == "unit" else torch.randn
    return draw(spec.shape, generator=generator, dtype=torch.float32)


def _mask(shape: tuple[int, ...]) -> torch.Tensor:
    """Neither all true nor all false: some masks say what to keep, some what to leave out."""
    mask = torch.ones(shape, dtype=torch.bool)
    if shape and shape[-1] > 1:
        mask[..., -1] = False
    return mask
