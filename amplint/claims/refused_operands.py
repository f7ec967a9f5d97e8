"""Operations that have no kernel for the low precision that they get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.low_precision import (
    assumed,
    by_node,
    doubted_beside_modules,
    follows_scenario,
    is_floating,
    low_lanes,
    surest,
    unproven_doubted,
)
from amplint.claims.operands import short_name
from amplint.frozen import dataclass
from amplint.infer.flow.complex_values import complex_values
from amplint.infer.lattice.dtypes import BITS, COMPLEX_HALF, LOW
from amplint.infer.lattice.origins import lineage
from amplint.infer.lattice.values import NONE, Const, Number, Trait
from amplint.infer.torch_model import sparse
from amplint.infer.torch_model.complex_products import lacks_complex_half
from amplint.infer.torch_model.memories import on_host
from amplint.infer.torch_model.torch_ops import LOW_NAMES, NUMPY, find_op
from amplint.infer.torch_model.uses import INITIALISATION
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand
    from amplint.judge.certainty import Standing

_PROMOTING = ("promote", "float", "complex", "real")
"""Results of operations that bring their operands to one dtype first: a float32 one lets the others in."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An operation with the operands that it refuses, and in which scenarios it does."""

    use: Use
    operands: tuple[Operand, ...]
    lanes: dict[int, Standing]
    last: tuple[int, int] | None = None
    """The last release of torch that does, where newer ones have the kernel."""

    @property
    def low(self) -> list[int]:
        """The scenarios in which the first operand is in low precision alone."""
        return [lane for lane in self.lanes if not self.operands[0].value.dtypes[lane].mask & ~(LOW | COMPLEX_HALF)]

    @property
    def of_handed_weights(self) -> bool:
        """Whether an operand comes of the weights of a model that the code is handed."""
        return any(o.handed for lane in self.lanes for each in self.operands for o in lineage(each.value.origin, lane))

    @property
    def sparse(self) -> Operand | None:
        """The sparse tensor that is multiplied, where that is why there is no kernel."""
        if not sparse.lacks_kernel(self.use.op, self.use.operands, sparse.DEVICE):
            return None
        return next(operand for operand in self.use.operands if operand.value.trait is Trait.SPARSE)

    @property
    def of_complex(self) -> bool:
        """Whether the first operand is complex."""
        return all(self.operands[0].value.dtypes[lane].mask & COMPLEX_HALF for lane in self.lanes)

    @property
    def initialises(self) -> bool:
        """Whether it fills a parameter of a module that is made."""
        return self.use.op.startswith(INITIALISATION)

    def gives_one_tensor(self, facts: FileFacts) -> bool:
        """Whether the operation gives one tensor in the dtype that it computes in."""
        op = find_op(self.use.op, facts.torch_version)
        return op is not None and op.result in ("first", "promote", "float")


def _refusal(facts: FileFacts, use: Use) -> Refusal | None:
    device = device_of(facts, use)
    found = find_op(use.op, facts.torch_version)
    op = found.on(device) if found is not None else None
    of_sparse = sparse.lacks_kernel(use.op, use.operands, device)
    refused = LOW_NAMES if of_sparse else op.lacking(device, use.arguments) if op is not None else ()
    if lacks_complex_half(use.op, use.arguments, device):
        refused = (*refused, "complex32")
    older = op.lacked_from(device, facts.oldest_torch) if op is not None and not refused else {}
    bits = {BITS[name] for name in refused or older}
    if not bits or _raises_anyway(use) or _is_of_complex_numbers(facts, use):
        return None
    lanes: dict[int, Standing] = {}
    operands = []
    for operand in use.operands:
        first = operand is use.operands[0] and not use.op.startswith("torch.Tensor.")
        if operand.value.maybe and not first and not of_sparse:
            continue
        low = low_lanes(facts, use, operand, lambda _, bit: bit in bits)
        if use.op == NUMPY and facts.device != "cpu" and not operand.value.host and "force" not in use.arguments:
            # On the device .numpy() raises, whatever the dtype.
            low = {}
        if not follows_scenario(facts, use):
            low = unproven_doubted(low, doubts.OUTSIDE_A_MODULE)
        if use.op == NUMPY and not is_floating(operand):
            low = unproven_doubted(low, doubts.MAY_BE_INTEGERS)
        if low:
            operands.append((operand, low))
            lanes.update({n: c for n, c in low.items() if n not in lanes or not lanes[n].proven})
    if op is not None and not op.strict and op.result == "first":
        of_first = next((low for operand, low in operands if operand is use.operands[0]), {})
        lanes = {n: c for n, c in lanes.items() if n in of_first}
    if op is not None and not op.strict and op.result in _PROMOTING:
        given = [name for name in op.tensors if not isinstance(use.arguments.get(name, NONE), (Const, Number))]
        lanes = {n: c for n, c in lanes.items() if sum(n in low for _, low in operands) >= len(given)}
    lanes = doubted_beside_modules(facts, use, lanes)
    if not lanes:
        return None
    lanes = surest(lanes)
    if of_sparse and any(operand.value.trait is Trait.SPARSE and operand.value.unsure for operand in use.operands):
        lanes = assumed(lanes)
    last = min(max(older.values()), facts.torch_version) if older else None
    if last is not None:
        lanes = assumed(unproven_doubted(lanes, doubts.OLDER_AND_ASSUMED))
    elif use.op.startswith(INITIALISATION):
        lanes = assumed(lanes)
        if not use.low_default and not facts.named:
            lanes = unproven_doubted(lanes, doubts.DEFAULT_UNSEEN)
    return Refusal(use, tuple(o for o, low in operands if low.keys() & lanes.keys()), lanes, last)


def device_of(facts: FileFacts, use: Use) -> str:
    """Where an operation is computed: on the host where all its operands lie in the host's memory."""
    return "cpu" if on_host(list(use.operands)) else facts.device


def _raises_anyway(use: Use) -> bool:
    """``stft`` of a real tensor raises in every dtype where ``return_complex`` is not given."""
    return short_name(use.op) == "stft" and "return_complex" not in use.arguments


def _is_of_complex_numbers(facts: FileFacts, use: Use) -> bool:
    """``view_as_complex`` of what may have been complex before, so that no low-precision tensor gets here."""
    first = use.operands[0].node if short_name(use.op) == "view_as_complex" and use.operands else None
    return first is not None and complex_values(facts.source.tree).may_be_complex(first, first.lineno)


def refusals(facts: FileFacts) -> Iterator[list[Refusal]]:
    """What each operation refuses."""
    for uses in by_node(facts.uses):
        found = [refusal for use in uses if (refusal := _refusal(facts, use)) is not None]
        if found:
            yield found
