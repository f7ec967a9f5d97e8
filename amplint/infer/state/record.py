"""What an analysis writes down for the rules, for the file being checked only."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amplint.finding import Cause
from amplint.infer.lattice.dtypes import Symbol
from amplint.infer.lattice.joining import Budget
from amplint.infer.state.facts import (
    Addressed,
    Aligned,
    Apart,
    BranchDtypes,
    BranchesMet,
    Called,
    CastCall,
    Confirming,
    Event,
    Mismatch,
    Promotion,
    Refused,
    Region,
    Running,
    TorchCall,
    Unmoved,
    Use,
    Used,
)
from amplint.infer.syntax.scripts import program_rows
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from amplint.infer.lattice.dtypes import Dtypes, Lane
    from amplint.infer.lattice.values import Layer, Origin, Tensor, Value
    from amplint.infer.state.activation import Activation
    from amplint.infer.state.function_facts import Sensitive
    from amplint.infer.state.operand import Operand


MAX_CONTEXTS = 12
"""Contexts of one operation that are told apart."""


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


class Watched(Budget, Protocol):
    """The analysis that is recorded."""

    from_user: bool
    """Whether what runs was entered as the program's user would."""


class Body:
    """What is run of an autograd Function: its sensitive operations, by ``id`` of their nodes, and whether autocast has
    no say in all else."""

    def __init__(self) -> None:
        self.sensitive: dict[int, Sensitive] = {}
        self.settled = True


class Recorder:
    """Collects facts of one file; what happens in other files of the project is not its concern."""

    observes = False
    """Whether it wants to know what every expression gives."""

    def __init__(self) -> None:
        self.trace: list[Event] = []
        self.activations: dict[int, list[int]] = {}
        self.entered: set[int] = set()
        self.called: dict[int, list[int]] = {}
        self.callers: dict[int, set[int]] = {}
        self._ended: set[int] = set()
        self.regions: dict[int, Region] = {}
        self.calls: dict[int, TorchCall] = {}
        self.layers_called: dict[int, Layer] = {}
        self.casts: dict[int, CastCall] = {}
        self._promotions: dict[int, Promotion] = {}
        self.addresses_taken: dict[int, Addressed] = {}
        self.drifted_apart: dict[int, Apart] = {}
        self.differing_branches: dict[int, BranchDtypes] = {}
        self._escaped: dict[int, set[int]] = {}
        self._overtaken: dict[int, set[int]] = {}
        self._pairs: dict[int, list[_Pair]] = {}
        self._aligned: dict[tuple[int, tuple[Decider, ...], bool], dict[int, tuple[int, Cause]]] = {}
        self._multiplied: set[int] = set()
        self._uses: dict[int, dict[Hashable, Use]] = {}
        self.unhindered: set[int] = set()
        self._used_in: dict[int, tuple[Use, ...]] = {}
        self._bodies: list[Body] = []
        self.taken: dict[int, bool] = {}
        """By ``id``, the calls in the file of functions that are followed: whether one of these takes the arguments."""
        self.unfinished: set[int] = set()
        """``id`` of the nodes of functions that were called and not followed to their end, for want of budget."""

    def began(self, frame: Activation, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Note that the body of a function of the file that is checked is followed; not where what runs only where the
        file is the program leads to it, whose objects are its own."""
        if self.concerns(frame) and not _is_of_program(frame):
            self.activations.setdefault(node.lineno, []).append(frame.number)
            if frame.caller is None or not frame.caller.function:
                self.entered.add(id(node))
            else:
                self.called.setdefault(node.lineno, []).append(frame.number)
                own = frame.caller.definition if self.concerns(frame.caller) else None
                self.callers.setdefault(node.lineno, set()).add(own.lineno if own is not None else 0)

    def concerns(self, frame: Activation) -> bool:
        return frame.namespace.own

    def passed(self, call: ast.expr, *, fits: bool) -> None:
        """Note that a call passes arguments to a function, which takes them or does not."""
        self.taken[id(call)] = fits or self.taken.get(id(call), False)

    def value(self, session: Watched, frame: Activation, node: ast.expr | ast.stmt, value: Value) -> None:
        """What an expression, or an assignment with an operator, gave: no rule asks."""

    def happened(self, frame: Activation, what: Mismatch | Refused | Unmoved) -> None:
        """Note what may raise in the file that is checked, or in what that calls."""
        if self.concerns(frame) or frame.left is not None:
            self._note(frame, what)

    def _note(self, frame: Activation, what: Mismatch | Refused | Unmoved | Called) -> None:
        self.trace.append(_event(frame, what))
        activation: Activation | None = frame
        while activation is not None:
            activation.traced = True
            activation = activation.caller

    def branches_met(self, frame: Activation, *paths: tuple[int, ...]) -> None:
        """Note that branches of these paths, one of which is always taken, were followed and meet."""
        if frame.traced and {*paths} - {frame.path}:
            self.trace.append(_event(frame, BranchesMet(paths)))

    def ended(self, frame: Activation, call: int) -> None:
        """Note that the call of this number is over, which is not followed again."""
        if frame.uses:
            self._used_in[call] = tuple(frame.uses.values())
        if frame.traced:
            self._ended.add(call)
            self.trace.append(_event(frame, Called(call, again=False)))

    def repeated(self, frame: Activation, call: int) -> None:
        """Note that a call equals the one of this number, so that the same would happen in it."""
        for use in self._used_in.get(call, ()):
            self._reached(frame, use)
        if call in self._ended:
            self._note(frame, Called(call, again=True))

    @contextmanager
    def confirming(self, frame: Activation, cls: ast.ClassDef) -> Iterator[None]:
        """Note what happens inside the ``with`` block as that of an autograd Function that modules apply."""
        self.trace.append(_event(frame, Confirming(cls, done=False)))
        yield
        self.trace.append(_event(frame, Confirming(cls, done=True)))

    def region(self, frame: Activation, region: Region) -> None:
        if self.concerns(frame):
            old = self.regions.get(id(region.node))
            if old is None or (region.nested and not old.nested):
                self.regions[id(region.node)] = region

    def torch_call(self, frame: Activation, name: str, node: ast.expr | ast.stmt, arguments: dict[str, Value]) -> None:
        if not isinstance(node, ast.Call) or not self.concerns(frame):
            return
        call = TorchCall(node, name, frame.autocast, frame.live, frame.region, frame.in_module, arguments)
        old = self.calls.get(id(node))
        if old is None or _under_autocast(call) > _under_autocast(old):
            self.calls[id(node)] = call

    def layer_call(self, frame: Activation, node: ast.expr, layer: Layer) -> None:
        """Note which layer a call in the file that is checked calls: the first of several."""
        if self.concerns(frame):
            self.layers_called.setdefault(id(node), layer)

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
        old = self.casts.get(id(node))
        if old is None or (tensor.maybe and not old.tensor.maybe):
            statement = frame.statement
            discarded = isinstance(statement, ast.Expr) and statement.value is node
            self.casts[id(node)] = CastCall(
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

    def callers_pair(self, frame: Activation, deciders: tuple[Decider, Decider], mismatch: Mismatch) -> None:
        """Operands that disagree if the caller passes different dtypes.

        A parameter counts as aligned with whatever a caller passes in another method of the same class.
        """
        pairs = self._pairs.setdefault(id(mismatch.node), [])
        if len(pairs) < MAX_CONTEXTS:
            fixed = [side for side in deciders if not isinstance(side, Symbol)]
            key = (fixed[0], _class_of(frame)) if fixed else deciders
            pairs.append(_Pair(key, _autocast_reaches(frame), frame.function, mismatch))

    def cast_of(self, node: ast.AST) -> Tensor | None:
        """What a cast of this file was applied to."""
        found = self.casts.get(id(node))
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
        self.addresses_taken.setdefault(id(found.node), found)

    def apart(self, found: Apart) -> None:
        """Note an operation of the file that is checked, whatever file the kernel is called in."""
        self.drifted_apart.setdefault(id(found.node), found)

    def branches(self, frame: Activation, found: BranchDtypes) -> None:
        if self.concerns(frame):
            self.differing_branches.setdefault(frame.function, found)

    def use(self, frame: Activation, use: Use) -> None:
        """Note an operation that low precision may not bear, once for each context that it runs in."""
        seen = self._uses.setdefault(id(use.node), {})
        key = (use.op, use.live, *(o.value.key for o in use.operands), *use.numbers.items())
        if key in seen or len(seen) < MAX_CONTEXTS:
            self._reached(frame, seen.setdefault(key, use))

    def _reached(self, frame: Activation, use: Use) -> None:
        """Note that a use is met, and for the calls in which nothing has raised that it is whenever they are made."""
        around: Activation | None = frame
        while around is not None and not around.traced:
            around.uses = around.uses or {}
            around.uses[id(use)] = use
            around = around.caller
        if around is None:
            self.unhindered.add(id(use))
        elif id(use) not in self.unhindered:
            self.trace.append(_event(frame, Used(use.node, use)))

    @property
    def in_function(self) -> bool:
        """Whether an autograd Function's methods are being run for what autocast decides in them."""
        return bool(self._bodies)

    def sensitive(self, node: ast.expr | ast.stmt, operation: Sensitive) -> None:
        """An operation that autocast casts, or would be expected to, inside an autograd Function."""
        for body in self._bodies:
            before = body.sensitive.get(id(node))
            if before is None or (operation.known and not before.known):
                body.sensitive[id(node)] = operation

    def unsettled(self) -> None:
        """Note that autocast has a say in what is called, other than casting to 16 bit, or that it is not known what
        that computes."""
        for body in self._bodies:
            body.settled = False

    @contextmanager
    def watching(self) -> Iterator[Body]:
        """Collect what autocast decides about inside the ``with`` block."""
        body = Body()
        self._bodies.append(body)
        try:
            yield body
        finally:
            self._bodies.pop()

    def aligned(self) -> Iterator[Aligned]:
        """Operands that follow different callers, and are cast to one dtype in another function.

        A cast where autocast never reaches, as in most backward methods, or before an operation that autocast does not
        cast for, may only make up for that; it says nothing of a place that it reaches.
        """
        for pair in (pair for pairs in self._pairs.values() for pair in pairs):
            ways = [(pair.mismatch.lanes[0], pair.key, reached) for reached in {True, pair.reached}]
            casts = [item for way in ways for item in self._aligned.get(way, {}).items()]
            causes = (cause for key, (at, cause) in casts if key in self._multiplied and at != pair.function)
            cause = next(causes, None)
            if cause is not None:
                yield Aligned(pair.mismatch, pair.function, cause)

    def uses(self) -> tuple[Use, ...]:
        return tuple(use for seen in self._uses.values() for use in seen.values())

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
            if lanes:
                kept.append(replace(promotion, lanes=lanes))
        return tuple(kept)


class _Pair(NamedTuple):
    """Operands of which a caller decides a dtype; ``reached``: where they meet, autocast may be on."""

    key: tuple[Decider, ...]
    reached: bool
    function: int
    mismatch: Mismatch


def _event(frame: Activation, what: Mismatch | Refused | Unmoved | Used | BranchesMet | Called | Confirming) -> Event:
    """What happens where an activation is now."""
    chain, callers = [], []
    activation: Activation | None = frame
    while activation is not None:
        chain.append(Running(activation.number, activation.function, activation.path, _row(activation.statement)))
        activation = activation.caller
    left = frame.left
    while left is not None:
        callers.append(left[0].function)
        left = left[0].left
    file = frame.namespace
    return Event(what, tuple(chain), tuple(callers), bool(frame.block), frame.autocast, file.own, file.path)


def _is_of_program(frame: Activation) -> bool:
    """Whether a block that runs only where its file is the program leads to an activation."""
    outermost = frame
    while outermost.caller is not None:
        outermost = outermost.caller
    statement = outermost.statement if not outermost.function else None
    return statement is not None and any(
        first <= statement.lineno <= last for first, last in program_rows(outermost.namespace.tree)
    )


def _row(statement: ast.stmt | None) -> int:
    """The last line of a statement, of one that holds others the first."""
    if statement is None:
        return 0
    return statement.lineno if hasattr(statement, "body") else statement.end_lineno or statement.lineno


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
