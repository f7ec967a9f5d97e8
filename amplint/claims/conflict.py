"""Operands that disagree, as findings tell it: the dtypes, what does not belong, where that came from."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from amplint.finding import Place
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import LOW, bits_of, names_of
from amplint.infer.lattice.origins import deciding
from amplint.infer.lattice.strength import Strength
from amplint.infer.state.facts import Kind
from amplint.infer.torch_model.provenance import is_upcast, made_in

if TYPE_CHECKING:
    import ast

    from amplint.finding import Cause, Doubt
    from amplint.infer.state.facts import FileFacts, Mismatch
    from amplint.infer.state.operand import MadeOperand, Operand
    from amplint.judge.certainty import Standing
    from amplint.source import Span


@dataclass(frozen=True, slots=True)
class Conflict:
    """An operation whose operands disagree in dtype in some scenarios.

    ``left`` and ``right`` are the operands that differ, ``operands`` all of them. ``standing``: forced where in every
    scenario named the facts force the failure; doubted where the operands may not come together. ``raises`` is False
    where autocast silently undoes what the code asks for. ``left`` is ``right`` where the operation does not take its
    dtype.
    """

    node: ast.expr | ast.stmt
    op: str
    kind: Kind
    left: Operand
    right: Operand
    operands: tuple[Operand, ...]
    scenarios: tuple[str, ...]
    left_dtype: str
    right_dtype: str
    standing: Standing
    raises: bool
    causes: tuple[Cause, ...]
    function: int
    """Identifies the function that the operation stands in."""
    made: MadeOperand | None = None
    """The constant or table among the operands, where that is what the conflict is about."""
    culprit: Place | None = None
    """Where the dtype came from that does not belong: several operations that fail for it are one defect."""
    also: tuple[ast.expr | ast.stmt, ...] = ()
    """The other operations of its function that fail for its culprit."""
    aligned: Span | None = None
    """The cast elsewhere in the file by which it is known that callers may pass operands of different dtypes."""
    led_by: ast.expr | None = None
    """The call, in the region that switched autocast off, that leads to the function in which the operation stands."""
    cited: bool = False
    """It is a kernel of another library, by what that library's source says."""
    elsewhere: Cause | None = None
    """The operation, where it stands in another file: ``node`` is the call that leads there from this one, and the
    operands have no nodes."""
    by_callers: bool = False
    """Callers may pass dtypes that disagree with what is fixed here, and none was seen to."""

    def doubted(self, *doubts: Doubt) -> Conflict:
        """The same, with further doubts."""
        return replace(self, standing=self.standing.doubted(*doubts))


def conflict_of(
    facts: FileFacts, found: Mismatch, function: int, lanes: tuple[int, ...], standing: Standing
) -> Conflict:
    """What a mismatch claims of these scenarios, with the dtypes and causes of the first one."""
    lane, pair = lanes[0], found.pair
    made = made_in(pair, lane) if found.kind in (Kind.CONSTANT, Kind.TABLE) else None
    left_dtype, right_dtype = _different_dtypes(*pair, lane)
    return Conflict(
        node=found.node,
        op=found.op,
        kind=found.kind,
        left=pair[0],
        right=pair[1],
        operands=found.operands,
        scenarios=tuple(facts.scenarios[number].name for number in lanes),
        left_dtype=left_dtype,
        right_dtype=right_dtype,
        standing=standing,
        raises=found.raises,
        causes=(*facts.causes(pair, lane), *([found.elsewhere] if found.elsewhere is not None else ())),
        function=function,
        made=made,
        culprit=_culprit(found, lane),
        aligned=found.aligned,
        led_by=found.led_by,
        cited=found.cited,
        elsewhere=found.elsewhere,
        by_callers=bool(found.strengths) and all(map(partial(_is_passed, pair), found.lanes, found.strengths)),
    )


def _is_passed(pair: tuple[Operand, Operand], lane: int, strength: Strength) -> bool:
    """Whether dtypes differ in a scenario only for what a caller may pass, or is taken to on a path to here."""
    followed = any(operand.value.dtypes[lane].assumed for operand in pair)
    return strength is Strength.CALLER or (strength is Strength.PATH and followed)


def _culprit(found: Mismatch, lane: int) -> Place | None:
    """Where the operand that is out of place got its dtype: the cast, the gradient, else what is no parameter."""
    kind = found.kind
    for operand in found.pair:
        if kind is Kind.BACKWARD and not operand.value.gradient:
            continue
        if kind in (Kind.UPCAST, Kind.UNDONE_UPCAST) and not is_upcast(operand.value, lane):
            continue
        if operand.value.leaf and kind not in (Kind.UPCAST, Kind.UNDONE_UPCAST):
            continue
        origin = deciding(operand.value.origin, lane)
        if origin is not None:
            return Place(origin.source.path, origin.span)
    return None


def _different_dtypes(left: Operand, right: Operand, lane: int) -> tuple[str, str]:
    """A pair of different dtypes that the two operands can have; of several, one in which a gradient is low."""
    a, b = left.value.dtypes[lane], right.value.dtypes[lane]
    pairs = [(x, y) for x in bits_of(a.named) for y in bits_of(b.named) if x != y]
    if not pairs:
        return "/".join(names_of(a.mask)), "/".join(names_of(b.mask))
    if right.value.gradient:
        pairs.sort(key=lambda pair: not pair[1] & LOW)
    return names_of(pairs[0][0])[0], names_of(pairs[0][1])[0]
