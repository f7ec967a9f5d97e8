"""Sizes that matter: what was found to run gets several of what it has one of, and sizes that differ from each other.

A size of one lets an operation broadcast, and an einsum multiply where it would call a kernel; equal sizes let an
operation run along the wrong dimension. Each change is kept only if the module still runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amplint.verify.build import names
from amplint.verify.build.signatures import VARIADIC
from amplint.verify.build.spec import Const, Plan, Tensor, replaced, tensors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.found import Found

SECONDS = 6.0
_MOST_TRIES = 16
_MOST_SLOW = 0.5
"""Seconds of one forward beyond which a module is left as it is."""
_MOST_SIDE = 64
_NOT_A_COUNT = re.compile(
    r"strid|dilat|pad|ind(ex|ices)|(^|_)(id|idx|dim|dims|axis|axes|step|steps|seed|start|offset|version|rank|epoch)s?$|"
    r"scale|factor|ratio|eps|alpha|beta|gamma|lambda|weight|momentum|temperature|drop|prob|freq|every|interval|"
    r"kernel|ksize|expan|mult|norm_type|^p$|^ord(er)?$|sigma|verbose|init|base|theta|min_|_min|power|degree|gain|decay"
)
"""Numbers that count nothing, or of which more is another computation."""


def spread(found: Found) -> Found:
    """``found`` with larger sizes in the place of ones, an odd length, and images wider than high, where it runs so."""
    if found.forward.seconds > _MOST_SLOW:
        return found
    deadline = found.search.deadline.sooner(min(SECONDS, found.search.deadline.left() / 3))
    for plan in _several(found):
        if deadline.left() <= 0:
            return found
        changed = found.with_plan(plan, deadline, _MOST_TRIES)
        if changed is not None and ones(changed.inputs) <= ones(found.inputs):
            found = changed
            if not _counts_of_one(found):
                break
    for step in (_without_ones, _odd_lengths, _oblong):
        for inputs in step(found.inputs):
            if deadline.left() <= 0:
                return found
            changed = found.with_inputs(inputs)
            if changed is not None:
                found = changed
                break
    return found


def ones(inputs: Plan) -> int:
    """How many dimensions of the tensors have a size of one."""
    return sum(spec.shape.count(1) for spec in tensors_of(inputs).values())


def _counts_of_one(found: Found) -> dict[str, Any]:
    """Constructor parameters that count something and are one, or a list of ones."""
    parameters = {n: p for n, p in found.search.parameters.items() if p.kind not in VARIADIC}
    counted: dict[str, Any] = {}
    for name in dict.fromkeys([*parameters, *found.plan]):
        spec = found.plan.get(name)
        value = parameters[name].default if spec is None else spec.value if isinstance(spec, Const) else None
        if _is_one(value) and not _NOT_A_COUNT.search(name.lower()):
            counted[name] = value
    return counted


def _is_one(value: Any) -> bool:
    """One, or a list of ones."""
    if type(value) in (list, tuple):
        return bool(value) and all(type(item) is int and item == 1 for item in value)
    return type(value) is int and value == 1


def _times(value: Any, several: int) -> Const:
    return Const(type(value)(several for _ in value) if isinstance(value, (list, tuple)) else several)


def _several(found: Found) -> Iterator[Plan]:
    """Plans with two or more of what there is one of: all of it together, then one by one."""
    counted = _counts_of_one(found)
    if not counted:
        return
    yield {**found.plan, **{name: _times(one, 2 + index % 2) for index, (name, one) in enumerate(counted.items())}}
    if len(counted) > 1:
        yield {**found.plan, **{name: _times(one, 2) for name, one in counted.items()}}
    for name, one in list(counted.items())[:4]:
        for several in (2, 4):
            yield {**found.plan, name: _times(one, several)}


def _without_ones(inputs: Plan) -> Iterator[Plan]:
    """Batches of one and other sizes of one made larger: all together, then the batch, then each tensor's own."""
    found = {path: spec for path, spec in tensors_of(inputs).items() if 1 in spec.shape}
    if not found:
        return

    def larger(spec: Tensor, *, batch: bool, rest: bool) -> Tensor:
        sizes = [
            size if size != 1 else names.BATCH if index == 0 and batch else 3 if index and rest else 1
            for index, size in enumerate(spec.shape)
        ]
        return _shaped(spec, tuple(sizes))

    for options in ({"batch": True, "rest": True}, {"batch": True, "rest": False}, {"batch": False, "rest": True}):
        yield _with(inputs, {path: larger(spec, **options) for path, spec in found.items()})
    for path, spec in found.items():
        yield _with(inputs, {path: larger(spec, batch=True, rest=True)})


def _odd_lengths(inputs: Plan) -> Iterator[Plan]:
    """One less of the length that sequences share."""
    changed: dict[str, Tensor] = {}
    for path, spec in tensors_of(inputs).items():
        if len(spec.shape) in (2, 3) and spec.shape[1] == names.LENGTH:
            changed[path] = _shaped(spec, (spec.shape[0], names.LENGTH - 1, *spec.shape[2:]))
        elif len(spec.shape) == 3 and spec.shape[2] == names.LENGTH:
            changed[path] = _shaped(spec, (*spec.shape[:2], names.LENGTH - 1))
        elif len(spec.shape) == 4 and spec.shape[2] == names.LENGTH and spec.shape[3] != names.LENGTH:
            changed[path] = _shaped(spec, (*spec.shape[:2], names.LENGTH - 1, spec.shape[3]))
    if changed:
        yield _with(inputs, changed)


def _oblong(inputs: Plan) -> Iterator[Plan]:
    """Squares that tensors of four and more dimensions end in, or hold before their features, half as wide again."""
    for first in (-2, 1):
        changed: dict[str, Tensor] = {}
        for path, spec in tensors_of(inputs).items():
            if len(spec.shape) >= 4 and 1 < spec.shape[first] == spec.shape[first + 1] <= _MOST_SIDE:
                sizes: list[Any] = list(spec.shape)
                sizes[first + 1] = sizes[first + 1] * 3 // 2
                changed[path] = _shaped(spec, tuple(sizes))
        if changed:
            yield _with(inputs, changed)


def _shaped(spec: Tensor, shape: tuple[int, ...]) -> Tensor:
    return spec.shaped(shape)


def _with(inputs: Plan, changed: dict[str, Tensor]) -> Plan:
    for path, spec in changed.items():
        inputs = replaced(inputs, path, spec)
    return inputs
