"""What an analysis writes down for the rules, for the file being checked only."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.finding import Cause, Certainty
from amplint.infer.facts import BranchDtypes, CastCall, Conflict, Kind, Promotion, Region, Sensitive, TorchCall, Use

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from amplint.infer.dtypes import Dtypes
    from amplint.infer.frame import Frame
    from amplint.infer.values import Tensor, Value
    from amplint.source import Span


_CERTAINTIES = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE)
MAX_CONTEXTS = 12
"""Contexts of one operation that are told apart."""
_ONE_PER_ORIGIN = (Kind.UPCAST, Kind.AUTOCAST_EXIT, Kind.MIXED, Kind.CONSTANT, Kind.TABLE)


class Recorder:
    """Collects conflicts, regions and calls of one file; what happens in other files of the project is not its concern.

    A node that fails in several contexts is recorded once, with the scenarios of all of them.
    """

    def __init__(self) -> None:
        self._conflicts: dict[int, Conflict] = {}
        self._regions: dict[int, Region] = {}
        self._calls: dict[int, TorchCall] = {}
        self._casts: dict[int, CastCall] = {}
        self._promotions: dict[int, Promotion] = {}
        self._branches: dict[int, BranchDtypes] = {}
        self._escaped: dict[int, set[int]] = {}
        self._uses: dict[int, dict[Hashable, Use]] = {}
        self._sensitive: list[dict[int, Sensitive]] = []

    def concerns(self, frame: Frame) -> bool:
        return frame.namespace.own

    def conflict(self, frame: Frame, conflict: Conflict) -> None:
        if not self.concerns(frame):
            return
        old = self._conflicts.get(id(conflict.node))
        self._conflicts[id(conflict.node)] = conflict if old is None else _both(old, conflict)

    def region(self, frame: Frame, region: Region) -> None:
        if self.concerns(frame):
            old = self._regions.get(id(region.node))
            if old is None or (region.nested and not old.nested):
                self._regions[id(region.node)] = region

    def torch_call(self, frame: Frame, name: str, node: ast.expr | ast.stmt, arguments: dict[str, Value]) -> None:
        if not isinstance(node, ast.Call) or not self.concerns(frame):
            return
        call = TorchCall(node, name, frame.autocast, frame.live, frame.region, frame.in_module, arguments)
        old = self._calls.get(id(node))
        if old is None or _under_autocast(call) > _under_autocast(old):
            self._calls[id(node)] = call

    def cast(self, frame: Frame, node: ast.expr, tensor: Tensor, dtypes: Dtypes, written: bool) -> None:
        if not isinstance(node, ast.Call) or not self.concerns(frame):
            return
        old = self._casts.get(id(node))
        if old is None or (tensor.maybe and not old.tensor.maybe):
            statement = frame.statement
            discarded = isinstance(statement, ast.Expr) and statement.value is node
            self._casts[id(node)] = CastCall(
                node, tensor, dtypes, written, discarded, frame.live, frame.in_module, frame.function
            )

    def promotion(self, frame: Frame, promotion: Promotion) -> None:
        if self.concerns(frame):
            self._promotions.setdefault(id(promotion.node), promotion)

    def escapes(self, node: ast.AST, lane: int) -> None:
        """The value of a node is handed out in a scenario, in the dtype that it got there."""
        if id(node) in self._promotions:
            self._escaped.setdefault(id(node), set()).add(lane)

    def branches(self, frame: Frame, found: BranchDtypes) -> None:
        if self.concerns(frame):
            self._branches.setdefault(frame.function, found)

    def use(self, use: Use) -> None:
        """Note an operation that low precision may not bear, once for each context that it runs in."""
        seen = self._uses.setdefault(id(use.node), {})
        if len(seen) < MAX_CONTEXTS:
            key = (use.op, use.live, *(o.value.key for o in use.operands), *use.numbers.items())
            seen.setdefault(key, use)

    @property
    def in_function(self) -> bool:
        """Whether an autograd Function's methods are being run for what autocast decides in them."""
        return bool(self._sensitive)

    def sensitive(self, frame: Frame, node: ast.expr | ast.stmt, name: str, by_hand: bool) -> None:
        """An operation that autocast casts, or would be expected to, inside an autograd Function."""
        for found in self._sensitive:
            if id(node) not in found:
                span = frame.namespace.source.span(node)
                found[id(node)] = Sensitive(Cause(frame.namespace.path, span, name), name, by_hand)

    @contextmanager
    def watching(self) -> Iterator[dict[int, Sensitive]]:
        """Collect the sensitive operations that run inside the ``with`` block."""
        found: dict[int, Sensitive] = {}
        self._sensitive.append(found)
        try:
            yield found
        finally:
            self._sensitive.pop()

    def conflicts(self) -> tuple[Conflict, ...]:
        """One conflict a defect: of several operations that one cast or one uncast tensor makes fail, the first."""
        kept: list[Conflict] = []
        spoken: set[tuple[Kind, Span, int]] = set()
        for conflict in sorted(self._conflicts.values(), key=lambda c: _CERTAINTIES.index(c.certainty)):
            if conflict.kind in _ONE_PER_ORIGIN and conflict.culprit is not None:
                defect = (conflict.kind, conflict.culprit, conflict.function)
                if defect in spoken:
                    continue
                spoken.add(defect)
            kept.append(conflict)
        return tuple(kept)

    def regions(self) -> tuple[Region, ...]:
        return tuple(self._regions.values())

    def uses(self) -> tuple[Use, ...]:
        return tuple(use for seen in self._uses.values() for use in seen.values())

    def calls(self) -> tuple[TorchCall, ...]:
        return tuple(self._calls.values())

    def promotions(self) -> tuple[Promotion, ...]:
        """Those whose result a module returns, in the scenarios in which it does."""
        kept = []
        for key, promotion in self._promotions.items():
            lanes = tuple(lane for lane in promotion.lanes if lane in self._escaped.get(key, ()))
            names = tuple(n for n, lane in zip(promotion.scenarios, promotion.lanes, strict=True) if lane in lanes)
            if lanes:
                kept.append(replace(promotion, lanes=lanes, scenarios=names))
        return tuple(kept)

    def differing_branches(self) -> tuple[BranchDtypes, ...]:
        return tuple(self._branches.values())

    def casts(self) -> tuple[CastCall, ...]:
        return tuple(self._casts.values())


def _under_autocast(call: TorchCall) -> int:
    """In how many scenarios autocast is on at a call."""
    return sum(state.on and bool(call.live >> lane & 1) for lane, state in enumerate(call.autocast))


def _both(a: Conflict, b: Conflict) -> Conflict:
    """One defect seen in two contexts: the stronger claim, with every scenario of that strength."""
    if (a.raises, a.certainty) != (b.raises, b.certainty):
        return max(a, b, key=lambda c: (c.raises, -_CERTAINTIES.index(c.certainty)))
    return replace(a, scenarios=a.scenarios + tuple(s for s in b.scenarios if s not in a.scenarios))
