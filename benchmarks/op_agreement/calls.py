"""Calls of torch functions and layers from torch's own samples, each with other dtypes for its tensors."""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_utils import freeze_rng_state

from amplint.data._catalog import _spellings, _usable, kind_of, op_db, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

READ, KEEP = 60, 12
"""Samples read of each OpInfo, and unlike ones kept."""
MOST_MIXED = 4
"""Tensors of a call that are given another dtype than the rest, one at a time."""
FULL, LOW, HALF, WIDE = torch.float32, torch.bfloat16, torch.float16, torch.float64
UNIFORM = (FULL, LOW, HALF, WIDE, torch.int64, torch.int32, torch.bool, torch.complex64)
MIXED = ((FULL, LOW), (LOW, FULL), (FULL, torch.int64), (torch.int64, FULL), (LOW, torch.int64), (HALF, LOW))
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Outcome = Any
"""A dtype's name, "none" for what is no tensor, or a list of those."""


@dataclass(frozen=True)
class Case:
    """A call with the dtypes its tensors have. ``layer`` holds the arguments of the constructor of an nn layer."""

    name: str
    arguments: Arguments
    layer: Arguments | None = None
    parameters: torch.dtype = FULL

    def run(self) -> Outcome | None:
        """The dtypes that come out; None where torch raises."""
        args, kwargs = _copied(self.arguments[0]), _copied(self.arguments[1])
        torch.manual_seed(0)
        try:
            if self.layer is None:
                return described(resolve(self.name)(*args, **kwargs))
            made = getattr(torch.nn, self.name.removeprefix("torch.nn."))(*self.layer[0], **self.layer[1])
            return described(made.to(self.parameters).eval()(*args, **kwargs))
        except Exception:
            return None


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        items = [_copied(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return {key: _copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def described(out: Any) -> Outcome:
    """Dtype names in the shape of the result."""
    if isinstance(out, torch.Tensor):
        return str(out.dtype).removeprefix("torch.")
    if isinstance(out, (list, tuple)) and any(isinstance(item, (torch.Tensor, list, tuple)) for item in out):
        return [described(item) for item in out]
    return "none"


# ---- other dtypes -----------------------------------------------------------------------------------------------


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _recast(value: Any, dtypes: Iterator[torch.dtype | None]) -> Any:
    """The same arguments; each tensor, in order, with its dtype."""
    if isinstance(value, torch.Tensor):
        wanted = next(dtypes)
        return value if wanted is None else value.to(wanted)
    if isinstance(value, (list, tuple)):
        items = [_recast(item, dtypes) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return {key: _recast(item, dtypes) for key, item in value.items()} if isinstance(value, dict) else value


def with_other_dtypes(arguments: Arguments) -> Iterator[Arguments]:
    """The call with its floating tensors (else its integer ones) in one dtype after another, and in two at a time."""
    tensors = [*_tensors(arguments)]
    changed = [x.is_floating_point() or x.is_complex() for x in tensors]
    if not any(changed):
        yield arguments
        changed = [not x.is_floating_point() for x in tensors]
        pairs: Sequence[tuple[torch.dtype, torch.dtype]] = ((torch.int64, torch.int32), (torch.int64, torch.bool))
    else:
        pairs = MIXED
    places = [place for place, change in enumerate(changed) if change]
    for dtype in UNIFORM if places else ():
        yield _recast(arguments, iter([dtype if change else None for change in changed]))
    if len(places) > 1:
        for (most, one), place in itertools.product(pairs, places[:MOST_MIXED]):
            dtypes = [(one if i == place else most) if change else None for i, change in enumerate(changed)]
            yield _recast(arguments, iter(dtypes))


# ---- samples ----------------------------------------------------------------------------------------------------


def opinfo_names() -> dict[str, list[Any]]:
    """Public torch callables by qualified name, with the OpInfos that sample them."""
    names: dict[str, list[Any]] = {}
    for op in op_db:
        sure, maybe = _spellings(op)
        for name in dict.fromkeys([*sure, *maybe]):
            if resolve(name) is not None:
                names.setdefault(name, []).append(op)
    return names


def opinfo_cases(name: str, ops: Sequence[Any], read: Callable[[Any], list[Arguments]]) -> Iterator[Case]:
    """Every sample that runs under this name and gives what the OpInfo's own function gives."""
    for op in ops:
        for arguments in read(op):
            if name.startswith("torch.Tensor.") and not isinstance(arguments[0][0], torch.Tensor):
                continue
            if Case(name, arguments).run() is None or not _same_function(op, name, arguments):
                continue
            for other in with_other_dtypes(arguments):
                yield Case(name, other)


def _same_function(op: Any, name: str, arguments: Arguments) -> bool:
    try:
        own = described(op.op(*_copied(arguments[0]), **_copied(arguments[1])))
    except Exception:
        return True
    return bool(own == Case(name, arguments).run())


def opinfo_samples(op: Any) -> list[Arguments]:
    """Unlike samples of an OpInfo, with its arguments as it gives them."""
    dtype = next((d for d in (FULL, torch.int64, torch.complex64, torch.bool) if d in op.dtypes), None)
    found: dict[str, Arguments] = {}
    if dtype is None:
        return []
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), READ):
            arguments = ((sample.input, *sample.args), dict(sample.kwargs))
            if _usable(arguments):
                key = [kind_of(a) for a in arguments[0]] + sorted(f"{k}{kind_of(v)}" for k, v in arguments[1].items())
                found.setdefault(repr(key), arguments)
    return list(found.values())[:KEEP]


def layer_cases(name: str | None = None) -> Iterator[Case]:
    """Every ModuleInfo's samples, with parameters in one dtype and inputs in the same or another."""
    for info in module_db:
        cls = info.module_cls
        public = f"torch.nn.{cls.__name__}"
        if getattr(torch.nn, cls.__name__, None) is not cls or (name is not None and public != name):
            continue
        with freeze_rng_state():
            inputs = info.module_inputs_func(info, device="cpu", dtype=FULL, requires_grad=False, training=False)
        for sample in inputs:
            if sample.forward_input is None:
                continue
            made: Arguments = (sample.constructor_input.args, dict(sample.constructor_input.kwargs))
            given: Arguments = (sample.forward_input.args, dict(sample.forward_input.kwargs))
            if not _usable(given) or Case(public, given, made).run() is None:
                continue
            for other, parameters in itertools.product(with_other_dtypes(given), (FULL, LOW, HALF)):
                yield Case(public, other, made, parameters)
