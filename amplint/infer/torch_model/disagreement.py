"""Two operands of an operation that disagree, as a finding will tell it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amplint.finding import Place
from amplint.infer.lattice.dtypes import LOW, bits_of, names_of
from amplint.infer.lattice.origins import causes, deciding
from amplint.infer.state.facts import Conflict, Kind, Operand
from amplint.infer.torch_model.elsewhere import brought_lanes, seen_from
from amplint.infer.torch_model.provenance import is_upcast, made_in

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame
    from amplint.judge.certainty import Standing
    from amplint.source import Span


@dataclass(frozen=True, slots=True)
class Disagreement:
    """``pair`` of the ``operands`` of ``op`` have dtypes that do not go together in the scenarios ``lanes``."""

    node: ast.expr | ast.stmt
    op: str
    kind: Kind
    pair: tuple[Operand, Operand]
    operands: tuple[Operand, ...]
    lanes: tuple[int, ...]

    def record(
        self, frame: Frame, standing: Standing, *, raises: bool = True, cited: bool = False, sure: bool = False
    ) -> None:
        """Note it where it lies in the file that is checked, or fails elsewhere for what that file hands over."""
        if frame.session.recorder.concerns(frame):
            found = self.conflict(frame, standing, raises=raises, cited=cited)
            frame.session.recorder.conflict(frame, found, sure=sure)
        elif frame.left is not None and raises and not cited and standing.told:
            caller, call = frame.left
            brought = brought_lanes(frame, caller, self.kind, self.pair, list(self.lanes))
            if brought and isinstance(call, ast.Call):
                found = replace(self, lanes=tuple(brought)).conflict(frame, standing)
                frame.session.recorder.conflict(caller, seen_from(caller, call, frame, found), sure=sure)

    def conflict(
        self,
        frame: Frame,
        standing: Standing,
        *,
        raises: bool = True,
        cited: bool = False,
        aligned: Span | None = None,
    ) -> Conflict:
        """With the dtypes and causes of the first scenario."""
        lane = self.lanes[0]
        left, right = self.pair
        left_dtype, right_dtype = _different_dtypes(left, right, lane)
        return Conflict(
            node=self.node,
            op=self.op,
            kind=self.kind,
            left=left,
            right=right,
            operands=self.operands,
            scenarios=tuple(frame.session.scenarios[number].name for number in self.lanes),
            left_dtype=left_dtype,
            right_dtype=right_dtype,
            standing=standing,
            raises=raises,
            causes=causes(frame.namespace.path, [operand.value for operand in self.pair], lane),
            function=frame.function,
            culprit=_culprit(self.pair, self.kind, lane),
            cited=cited,
            made=made_in(self.pair, lane) if self.kind in (Kind.CONSTANT, Kind.TABLE) else None,
            aligned=aligned,
        )


def _culprit(pair: tuple[Operand, Operand], kind: Kind, lane: int) -> Place | None:
    """Where the operand that is out of place got its dtype: the cast, the gradient, else what is no parameter."""
    for operand in pair:
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
    pairs = [(x, y) for x in bits_of(a.mask) for y in bits_of(b.mask) if x != y]
    if not pairs:
        return "/".join(names_of(a.mask)), "/".join(names_of(b.mask))
    if right.value.gradient:
        pairs.sort(key=lambda pair: not pair[1] & LOW)
    return names_of(pairs[0][0])[0], names_of(pairs[0][1])[0]
