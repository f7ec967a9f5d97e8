"""What an analysis writes down for the rules, for the file being checked only."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amplint.finding import Cause, Place
from amplint.infer.lattice.dtypes import Symbol
from amplint.infer.state.facts import (
    Addressed,
    Apart,
    BranchDtypes,
    CastCall,
    Conflict,
    Kind,
    Operand,
    Promotion,
    Region,
    Sensitive,
    TorchCall,
    Use,
)
from amplint.infer.state.reached import note_failure, note_missing_kernel, raised_before
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from collections.abc import Sequence as Items

    from amplint.infer.lattice.dtypes import Dtypes, Lane
    from amplint.infer.lattice.values import Origin, Tensor, Value
    from amplint.infer.state.activation import Activation


MAX_CONTEXTS = 12
"""Contexts of one operation that are told apart."""
_ONE_PER_ORIGIN = (Kind.UPCAST, Kind.AUTOCAST_EXIT, Kind.MIXED, Kind.CONSTANT, Kind.TABLE)


Decider = Symbol | int
"""What decides a dtype: a caller, or the place where a parameter was made, by ``id`` of its node."""


def decider(origin: Origin | None, lane: Lane) -> Decider | None:
    """What decides the dtype of a tensor in a scenario: the caller that passes it, or the place that made the parameter
    that it is; None for anything computed."""
    if origin is None:
        return None
    if isinstance(origin.node, ast.arg):
        return lane.symbol if lane.assumed else None
    return id(origin.node) if origin.parameter and lane.exact else None


class Recorder:
    """Collects conflicts, regions and calls of one file; what happens in other files of the project is not its concern.

    A node that fails in several contexts is recorded once, with the scenarios of all of them.
    """

    def __init__(self) -> None:
        self._conflicts: dict[int, Conflict] = {}
        self._failed: dict[tuple[Kind, Place, int], Conflict] = {}
        self._first: dict[int, set[int]] = {}
        self._behind: dict[int, list[Items[int]]] = {}
        self._regions: dict[int, Region] = {}
        self._calls: dict[int, TorchCall] = {}
        self._casts: dict[int, CastCall] = {}
        self._promotions: dict[int, Promotion] = {}
        self._addressed: dict[int, Addressed] = {}
        self._apart: dict[int, Apart] = {}
        self._branches: dict[int, BranchDtypes] = {}
        self._escaped: dict[int, set[int]] = {}
        self._overtaken: dict[int, set[int]] = {}
        self._pairs: dict[int, list[_Pair]] = {}
        self._aligned: dict[tuple[int, tuple[Decider, ...], bool], dict[int, tuple[int, Cause]]] = {}
        self._multiplied: set[int] = set()
        self._refused: set[int] = set()
        self._uses: dict[int, dict[Hashable, Use]] = {}
        self._sensitive: list[dict[int, Sensitive]] = []

    def concerns(self, frame: Activation) -> bool:
        return frame.namespace.own

    def conflict(self, frame: Activation, conflict: Conflict, *, sure: bool = False) -> None:
        """Note operands that disagree. ``sure``: they do on every path, for what callers are taken to pass."""
        if not self.concerns(frame):
            return
        if conflict.standing.told:
            self._behind.setdefault(id(conflict.node), []).append(raised_before(frame, conflict))
            if conflict.raises and not conflict.cited:
                note_failure(frame, conflict, sure=sure)
        self._first.setdefault(id(conflict.node), set()).add(id(self._failed_before(frame, conflict)))
        if conflict.culprit is not None and conflict.raises and not frame.block:
            defect = (conflict.kind, conflict.culprit, frame.function)
            failed = self._failed.get(defect)
            if failed is None or not failed.standing.told:
                self._failed[defect] = conflict
        old = self._conflicts.get(id(conflict.node))
        self._conflicts[id(conflict.node)] = conflict if old is None else _both(old, conflict)

    def no_kernel(self, frame: Activation, node: ast.expr | ast.stmt, scenarios: list[str]) -> None:
        """Note an operation that raises in these scenarios for want of a kernel."""
        if self.concerns(frame):
            self._refused.add(id(node))
            note_missing_kernel(frame, node, scenarios)

    def _failed_before(self, frame: Activation, conflict: Conflict) -> ast.expr | ast.stmt:
        """What fails first for the same operand: outside of branches of a function that led here, else nothing before
        the operation itself.

        Where autocast is off, each operation wants a cast of its own.
        """
        caller = frame.left if conflict.kind is not Kind.AUTOCAST_EXIT else None
        while caller is not None and conflict.kind in _ONE_PER_ORIGIN and conflict.culprit is not None:
            failed = self._failed.get((conflict.kind, conflict.culprit, caller[0].function))
            if failed is not None and set(conflict.scenarios) <= set(failed.scenarios):
                return conflict.node if conflict.standing.told and not failed.standing.told else failed.node
            caller = caller[0].left
        return conflict.node

    @contextmanager
    def confirming(self, nodes: Iterable[ast.AST]) -> Iterator[None]:
        """Of what disagrees in these pieces of code so far, forget what does not disagree inside the ``with`` block."""
        inside = {id(node) for root in nodes for node in ast.walk(root)}
        before = {key: conflict for key, conflict in self._conflicts.items() if key in inside}
        for key in before:
            del self._conflicts[key]
        yield
        for key, conflict in before.items():
            if key in self._conflicts:
                self._conflicts[key] = conflict

    def region(self, frame: Activation, region: Region) -> None:
        if self.concerns(frame):
            old = self._regions.get(id(region.node))
            if old is None or (region.nested and not old.nested):
                self._regions[id(region.node)] = region

    def torch_call(self, frame: Activation, name: str, node: ast.expr | ast.stmt, arguments: dict[str, Value]) -> None:
        if not isinstance(node, ast.Call) or not self.concerns(frame):
            return
        call = TorchCall(node, name, frame.autocast, frame.live, frame.region, frame.in_module, arguments)
        old = self._calls.get(id(node))
        if old is None or _under_autocast(call) > _under_autocast(old):
            self._calls[id(node)] = call

    def cast(
        self,
        frame: Activation,
        node: ast.expr,
        tensor: Tensor,
        dtypes: Dtypes,
        written: bool,
        model: Origin | None = None,
    ) -> None:
        if not isinstance(node, ast.Call) or not self.concerns(frame):
            return
        if not written:
            self._note_alignment(frame, node, tensor, dtypes, model)
        old = self._casts.get(id(node))
        if old is None or (tensor.maybe and not old.tensor.maybe):
            statement = frame.statement
            discarded = isinstance(statement, ast.Expr) and statement.value is node
            self._casts[id(node)] = CastCall(
                node, tensor, dtypes, written, discarded, frame.live, frame.in_module, frame.function
            )

    def _note_alignment(
        self, frame: Activation, node: ast.Call, tensor: Tensor, dtypes: Dtypes, model: Origin | None
    ) -> None:
        """Of what a caller passes and a parameter, or of two things that callers pass, one is cast to the dtype of the
        other."""
        if not _is_named(node):
            return
        reached = _autocast_reaches(frame)
        for number, other in enumerate(dtypes):
            a = decider(tensor.origin, tensor.dtypes[number])
            b = other.symbol if other.symbol is not None and other.assumed else decider(model, other)
            if a is None or b is None or a is b or not any(isinstance(side, Symbol) for side in (a, b)):
                continue
            cause = Cause(frame.namespace.path, frame.namespace.source.span(node), "here they are given one dtype")
            keys: list[tuple[Decider, ...]] = [(a, b), (b, a)]
            for key in keys + [(side, _class_of(frame)) for side in (a, b) if not isinstance(side, Symbol)]:
                self._aligned.setdefault((number, key, reached), {})[id(node)] = frame.function, cause

    def multiplied(self, operands: list[Operand]) -> None:
        """Operands of an operation that autocast casts for: if the code casts one itself, as it is or scaled, that is
        not for autocast."""
        for origin in (operand.value.origin for operand in operands):
            if origin is not None:
                scaled = origin.parents if isinstance(origin.node, ast.BinOp) else ()
                self._multiplied.update(id(place.node) for place in (origin, *scaled))

    def callers_pair(self, frame: Activation, lane: int, deciders: tuple[Decider, Decider], conflict: Conflict) -> None:
        """Operands that disagree if the caller passes different dtypes: a conflict where they are aligned elsewhere.

        A parameter counts as aligned with whatever a caller passes in another method of the same class.
        """
        pairs = self._pairs.setdefault(id(conflict.node), [])
        if len(pairs) < MAX_CONTEXTS:
            fixed = [side for side in deciders if not isinstance(side, Symbol)]
            key = (fixed[0], _class_of(frame)) if fixed else deciders
            pairs.append(_Pair(lane, key, _autocast_reaches(frame), conflict))

    def _aligned_elsewhere(self) -> Iterator[Conflict]:
        """One for each function whose operands follow different callers, and are cast to one dtype in another one.

        A cast where autocast never reaches, as in most backward methods, or before an operation that autocast does not
        cast for, may only make up for that; it says nothing of a place that it reaches.
        """
        spoken: set[int] = set()
        for node, pairs in self._pairs.items():
            for pair in pairs if node not in self._conflicts else ():
                ways = [(pair.lane, pair.key, reached) for reached in {True, pair.reached}]
                casts = [item for way in ways for item in self._aligned.get(way, {}).items()]
                function = pair.conflict.function
                causes = (cause for key, (where, cause) in casts if key in self._multiplied and where != function)
                cause = next(causes, None)
                if cause is not None and function not in spoken:
                    spoken.add(function)
                    yield replace(pair.conflict, causes=(*pair.conflict.causes, cause), aligned=cause.span)

    def cast_of(self, node: ast.AST) -> Tensor | None:
        """What a cast of this file was applied to."""
        found = self._casts.get(id(node))
        return found.tensor if found is not None else None

    def promotion(self, frame: Activation, promotion: Promotion) -> None:
        if self.concerns(frame):
            self._promotions.setdefault(id(promotion.node), promotion)

    def escapes(self, node: ast.AST, lane: int) -> None:
        """The value of a node is handed out in a scenario, in the dtype that it got there."""
        if id(node) in self._promotions:
            self._escaped.setdefault(id(node), set()).add(lane)

    @property
    def selects(self) -> bool:
        """Whether a selection from a parameter promotes something so far."""
        return any(promotion.sink == "parameter" for promotion in self._promotions.values())

    def overtaken(self, nodes: Iterable[ast.AST], lane: int) -> None:
        """Of what comes from these nodes, something else makes float32 next, in one scenario."""
        for node in nodes:
            if id(node) in self._promotions:
                self._overtaken.setdefault(id(node), set()).add(lane)

    def addressed(self, found: Addressed) -> None:
        """Note a tensor made in the file that is checked, whatever file its address is taken in."""
        self._addressed.setdefault(id(found.node), found)

    def apart(self, found: Apart) -> None:
        """Note an operation of the file that is checked, whatever file the kernel is called in."""
        self._apart.setdefault(id(found.node), found)

    def branches(self, frame: Activation, found: BranchDtypes) -> None:
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

    def sensitive(self, node: ast.expr | ast.stmt, operation: Sensitive) -> None:
        """An operation that autocast casts, or would be expected to, inside an autograd Function."""
        for found in self._sensitive:
            before = found.get(id(node))
            if before is None or (operation.known and not before.known):
                found[id(node)] = operation

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
        """One conflict a defect: of several operations that one cast or one uncast tensor makes fail, the first, which
        names the others, and none in a function that is only called behind it."""
        kept: list[Conflict] = []
        spoken: dict[tuple[Kind, Place, int], int] = {}
        found = [*self._conflicts.values(), *self._aligned_elsewhere()]
        for conflict in sorted(found, key=lambda c: c.standing.rank):
            if self._first.get(id(conflict.node), {id(conflict.node)}) <= self._conflicts.keys() - {id(conflict.node)}:
                continue
            if conflict.kind in _ONE_PER_ORIGIN and conflict.culprit is not None:
                defect = (conflict.kind, conflict.culprit, conflict.function)
                if defect in spoken:
                    if conflict.standing.told:
                        first = kept[spoken[defect]]
                        kept[spoken[defect]] = replace(first, also=(*first.also, conflict.node))
                    continue
                spoken[defect] = len(kept)
            kept.append(conflict)
        told = self._refused | {id(conflict.node) for conflict in kept if conflict.standing.told}
        return tuple(c.doubted(doubts.FAILS_BEFORE) if self._hidden(c, told) else c for c in kept)

    def _hidden(self, conflict: Conflict, told: set[int]) -> bool:
        """Whether something that is told raises before an operation wherever that was seen."""
        return all(told.intersection(before) for before in self._behind.get(id(conflict.node), [()]))

    def regions(self) -> tuple[Region, ...]:
        return tuple(self._regions.values())

    def uses(self) -> tuple[Use, ...]:
        return tuple(use for seen in self._uses.values() for use in seen.values())

    def calls(self) -> tuple[TorchCall, ...]:
        return tuple(self._calls.values())

    def promotions(self) -> tuple[Promotion, ...]:
        """Those whose result matters: of what a module returns, in the scenarios in which it does, and of a selection
        from a parameter, in those in which nothing else makes it float32 next."""
        kept = []
        for key, promotion in self._promotions.items():
            if promotion.sink == "rebound":
                kept.append(promotion)
                continue
            if promotion.sink == "parameter":
                lanes = tuple(lane for lane in promotion.lanes if lane not in self._overtaken.get(key, ()))
            else:
                lanes = tuple(lane for lane in promotion.lanes if lane in self._escaped.get(key, ()))
            names = tuple(n for n, lane in zip(promotion.scenarios, promotion.lanes, strict=True) if lane in lanes)
            if lanes:
                kept.append(replace(promotion, lanes=lanes, scenarios=names))
        return tuple(kept)

    def addresses_taken(self) -> tuple[Addressed, ...]:
        return tuple(self._addressed.values())

    def drifted_apart(self) -> tuple[Apart, ...]:
        return tuple(self._apart.values())

    def differing_branches(self) -> tuple[BranchDtypes, ...]:
        return tuple(self._branches.values())

    def casts(self) -> tuple[CastCall, ...]:
        return tuple(self._casts.values())


@dataclass(frozen=True, slots=True)
class _Pair:
    """Operands of which a caller decides a dtype; ``reached``: where they meet, autocast may be on."""

    lane: int
    key: tuple[Decider, ...]
    reached: bool
    conflict: Conflict


def _is_named(cast: ast.Call) -> bool:
    """Whether what is cast is a variable, an attribute or an item, and nothing computed."""
    value = cast.func
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return isinstance(value, ast.Name)


def _class_of(frame: Activation) -> int:
    """Identifies the class whose method runs."""
    return id(frame.owner.node) if frame.owner is not None else 0


def _autocast_reaches(frame: Activation) -> bool:
    return not frame.backward or any(state.on for state in frame.autocast)


def _under_autocast(call: TorchCall) -> int:
    """In how many scenarios autocast is on at a call."""
    return sum(state.on and bool(call.live >> lane & 1) for lane, state in enumerate(call.autocast))


def _both(a: Conflict, b: Conflict) -> Conflict:
    """One defect seen in two contexts: the stronger claim, with every scenario of that strength."""
    if (a.raises, a.standing.rank) != (b.raises, b.standing.rank):
        return max(a, b, key=lambda c: (c.raises, -c.standing.rank))
    return replace(a, scenarios=a.scenarios + tuple(s for s in b.scenarios if s not in a.scenarios))
