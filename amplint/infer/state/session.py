"""One analysis: the scenarios it carries, the budget it has, and what it records."""

from __future__ import annotations

from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amplint.data.newer import measured
from amplint.infer.lattice.assumptions import ANY_CALLER, NOTHING_SETTLED, Assumptions, Settled
from amplint.infer.lattice.dtypes import (
    AUTOCASTABLE,
    BITS,
    COMPLEX,
    FLOAT64,
    FLOATS,
    OFF,
    UNKNOWN_LANE,
    Ambient,
    Autocast,
    Bound,
    Dtypes,
    Lane,
    Symbol,
    promote_lanes,
)
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.values import DTypeValue, Tensor, Trait, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Iterable, Iterator

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.lattice.values import Mapping
    from amplint.infer.names.definitions import Class, Enclosing
    from amplint.infer.names.namespace import Namespace, Project
    from amplint.infer.state.facts import Region
    from amplint.infer.state.record import Recorder

MAX_STEPS = 250_000
"""Expressions evaluated for one file before the rest of it is left unknown."""
MAX_ENTRY_STEPS = 25_000
"""Expressions evaluated for one function entered from outside, calls included."""
MAX_BINDING_STEPS = 5_000
"""Expressions evaluated for one name of another file."""
VALUES_A_STEP = 8
"""Values inside others, of a list say, that are joined for the price of one expression."""
MAX_DEPTH = 14
"""Calls followed into each other."""


def items_place(mapping: Mapping) -> Hashable:
    """The items of a dict, among what changes: with the activation in which it was made."""
    return (identity(mapping), "[]", mapping.maker or mapping.inside)


def made_before(place: Hashable, number: int, makes: set[int]) -> bool:
    """Whether what changes is not in a dict or an object that an activation made itself, or one that it called.

    ``number`` is that of the activation, ``makes`` the objects.
    """
    if not isinstance(place, tuple):
        return True
    return place[0] not in makes if len(place) < 3 else place[2] < number


class Known(NamedTuple):
    """What a call gave, when, and what it read of objects."""

    result: Value
    version: int
    reads: frozenset[Hashable]
    thrown: bool
    found: frozenset[tuple[Enclosing, str, Hashable]]
    """What variables of functions around held that may change between calls."""
    makes: frozenset[int]
    """Objects that were made, by identity."""
    back: int
    """The scenarios in which it came back."""
    raised: int
    """Those of them in which something surely raises before it does."""


class Caller(Enum):
    """Who calls what is entered from outside, which decides the dtypes that it gets."""

    USER = "the program's user, with the scenario's inputs"
    MODULE = "a module, with its inputs or with activations"
    ANY = "anything in the project"


class Entered(Protocol):
    """A call from outside, that can be made again."""

    def __call__(self) -> None: ...

    @property
    def stale(self) -> bool: ...


class OutOfBudget(Exception):
    """The step budget of the file, or of one entry, is spent; what is not yet known stays unknown."""


class Applied(NamedTuple):
    """``Function.apply(...)`` as it is called: with what, under which autocast, in which scenarios."""

    node: ast.expr
    arguments: Arguments
    autocast: Autocast
    live: int

    @property
    def lanes(self) -> list[int]:
        """The scenarios in which autocast is on."""
        return [lane for lane, state in enumerate(self.autocast) if state.on and self.live >> lane & 1]


class Session:
    """The state that one file's analysis shares: scenarios, device policy, memo of calls, recorder, budget."""

    def __init__(
        self,
        scenarios: tuple[Scenario, ...],
        device: str,
        torch_version: tuple[int, int],
        project: Project,
        recorder: Recorder,
        oldest_torch: tuple[int, int] | None = None,
        assumptions: Assumptions = ANY_CALLER,
        settled: Settled = NOTHING_SETTLED,
    ) -> None:
        self.assumptions = assumptions
        self.settled = settled
        self.scenarios = scenarios
        self.device = device
        self.torch_version = torch_version
        self.oldest_torch = oldest_torch or torch_version
        self.oldest_run = min(torch_version, max(oldest_torch or measured(), measured()))
        """The oldest release that counts for what raises first: of those that the file states, or of all where it
        states none, from the one on that the tables were measured on."""
        self.project = project
        self.recorder = recorder
        self.lanes = len(scenarios)
        self.all_lanes = (1 << self.lanes) - 1
        self.steps = 0
        self.limit = MAX_ENTRY_STEPS
        self.memo: dict[Hashable, Value] = {}
        self.numbers: dict[Hashable, int] = {}
        """Numbers calls of functions, equal ones alike: what makes them equal takes long to hash."""
        self.calls: dict[int, Known] = {}
        """What calls of functions gave, by that number."""
        self.drivers: dict[int, bool] = {}
        """By ``id`` of a function, whether it drives training (see :mod:`amplint.infer.entry.drivers`)."""
        self.version = 0
        """Counts changes of what attributes of objects may hold."""
        self.frames = 0
        """Counts activations of functions."""
        self.mutations = 0
        """Counts those of objects that had been made."""
        self._changed: dict[Hashable, int] = {}
        self.entered: list[Entered] = []
        """What was entered from outside and may have to be run again."""
        self.active: set[int] = set()
        self.running: dict[int, int] = {}
        """How many calls of a function run inside each other, by ``id`` of its node."""
        self.roots: set[int] = set()
        """``id`` of the nodes of what only the program's user calls or constructs, where users are assumed."""
        self.from_user = False
        """Whether what runs was entered as the program's user would, rather than for want of a caller."""
        self.by_module = False
        """Whether what runs was entered as a method of a module; other code makes inputs and models of its own."""
        self.ran: set[int] = set()
        """``id`` of function nodes whose bodies were interpreted for some caller with arguments that are known."""
        self.of_modules: set[int] = set()
        """``id`` of function nodes that ran as part of a module."""
        self.told: set[int] = set()
        """``id`` of function nodes that some caller was seen to pass a tensor of a dtype that is known;
        of methods those that their own object calls, since another object may be held in ways that are not seen."""
        self.given: set[int] = set()
        """``id`` of the parameters of constructors that got something from outside."""
        self.changes: set[tuple[int, int]] = set()
        """Releases of torch that changed what an operation met here does to dtypes."""
        self.applied: dict[int, dict[Hashable, Applied | None]] = {}
        """How modules were seen to apply autograd Functions, by ``id`` of the class's node, once for each call and
        dtypes; None: with what, is not known."""
        self.local_classes: dict[int, Class] = {}
        """Classes defined inside functions, by ``id`` of their node."""
        self.low_defaults: dict[Namespace, bool] = {}
        """Whether the modules of a file may be built under a 16-bit default dtype."""
        self.indexing: dict[ast.AST, frozenset[str]] = {}
        """The variables that a function indexes with."""
        self.sizes: dict[ast.AST, frozenset[str]] = {}
        """The parameters of a constructor that are sizes of layers."""
        self.called_under: dict[int, tuple[Autocast, Region | None]] = {}
        """How autocast stood where a function was first called, by ``id`` of its node."""
        self.unknown: Dtypes = (UNKNOWN_LANE,) * self.lanes
        self.no_autocast: Autocast = (OFF,) * self.lanes
        self.ambient: Autocast = tuple(Ambient(BITS[s.autocast]) if s.autocast else OFF for s in scenarios)
        self._constants: dict[int, Dtypes] = {}
        self._promotions: dict[tuple[Dtypes, int | None, Dtypes, int | None], Dtypes] = {}
        self.keep_alive: list[object] = []
        """Objects whose ``id`` is part of a memo key."""

    def changed(self, place: Hashable, *, making: bool = False) -> None:
        """An attribute of an object, by ``id`` and name, or a global name may hold something else than before.

        ``making``: of an object whose constructor runs.
        """
        self.version += 1
        self.mutations += not making
        self._changed[place] = self.version

    def holds(self, known: Known) -> bool:
        """Whether a call would find what it found before."""
        if known.version != self.version and self.changed_since(known.version, known.reads):
            return False
        return not known.found or all(
            name in frame.variables and frame.variables[name].key == key for frame, name, key in known.found
        )

    def changed_since(self, version: int, places: Iterable[Hashable]) -> bool:
        """Whether any of these may hold something else than it did then."""
        return any(self._changed.get(place, 0) > version for place in places)

    @contextmanager
    def own_budget(self) -> Iterator[None]:
        """Evaluate something of another file, which costs this one nothing: it may have been evaluated before.

        It neither gains by the calls that this file made so far, nor is it inside of those that run.
        """
        steps, limit, calls, running = self.steps, self.limit, self.calls, self.running
        self.limit, self.calls, self.running = steps + MAX_BINDING_STEPS, {}, {}
        try:
            yield
        except OutOfBudget:
            self.project.cut += 1
        finally:
            self.steps, self.limit, self.calls, self.running = steps, limit, calls, running

    def spend(self, values: int) -> None:
        """Take from the budget what handling so many values inside others costs. Raises OutOfBudget."""
        cost = 1 + values // VALUES_A_STEP
        if self.steps + cost > self.limit:
            raise OutOfBudget
        self.steps += cost

    def begin_entry(self) -> None:
        """Give the next function entered from outside its share of the budget."""
        self.active.clear()
        self.running.clear()
        self.by_module = False
        self.limit = min(self.steps + MAX_ENTRY_STEPS, MAX_STEPS)

    def constant(self, mask: int) -> Dtypes:
        """The same dtypes in every scenario."""
        found = self._constants.get(mask)
        if found is None:
            found = self._constants[mask] = (Lane(mask),) * self.lanes
        return found

    def dtype(self, name: str) -> DTypeValue:
        """``torch.<name>`` written in the source."""
        bit = BITS.get(name)
        return DTypeValue(self.constant(bit) if bit else self.unknown, written=True)

    def argument(self, name: str, caller: Caller, *, annotated: bool = False, index: bool = False) -> Tensor:
        """A tensor that a caller passes: in each scenario what an input or an activation can have there.

        Under autocast that is float32 or the low dtype; without it the scenario's input dtype, or float32 where the
        caller is not a module. ``annotated``: the source says that it is a tensor; it is then taken to have dimensions.
        ``index``: something is indexed with it, so it is taken for integers.
        """
        symbol = Symbol(name)
        lanes = []
        if index:
            indices = Lane(BITS["int64"], symbol, assumed=True)
            return Tensor((indices,) * self.lanes, 1 if annotated else None, maybe=not annotated)
        for scenario in self.scenarios:
            mask = BITS[scenario.inputs]
            if caller is Caller.USER:
                lanes.append(Lane(mask))
                continue
            if scenario.autocast:
                mask |= BITS[scenario.autocast]
            if caller is Caller.ANY:
                mask |= BITS["float32"]
            lanes.append(Lane(mask, symbol, assumed=scenario.name != "fp32"))
        return Tensor(tuple(lanes), 1 if annotated else None, maybe=not annotated)

    def gradient(self, trait: Trait | None = None) -> Tensor:
        """The gradient of something that the inference does not see: of a parameter, most likely, and of its dtype."""
        lanes = (Lane(BITS[scenario.parameters], None, assumed=True, open=True) for scenario in self.scenarios)
        return Tensor(tuple(lanes), maybe=True, trait=trait)

    def symbolic_dtype(self, name: str) -> DTypeValue:
        """A ``torch.dtype`` that the inference does not see chosen."""
        lane = Lane(0, Symbol(name), False, True)
        return DTypeValue((lane,) * self.lanes)

    def placed(self, tensor: Tensor, role: str) -> Tensor:
        """What ``nn.Parameter`` or ``register_buffer`` holds once the module runs under each scenario.

        ``role`` is ``parameters`` or ``buffers``. Low-precision scenarios convert the floating ones of a module, except
        that some keep what was made with an explicit dtype. What becomes of float64 is not known: who wants that many
        digits does not ask for few.
        """
        lanes = []
        for scenario, lane in zip(self.scenarios, tensor.dtypes, strict=True):
            wanted = scenario.parameters if role == "parameters" else scenario.buffers
            floating = lane.mask & (FLOATS | COMPLEX)
            if lane.mask and not floating:
                lanes.append(lane)
            elif lane.mask == FLOAT64 and wanted != "float32":
                lanes.append(lane if scenario.keeps_explicit and tensor.explicit else UNKNOWN_LANE)
            elif not lane.mask:
                kept = role == "buffers" or scenario.keeps_explicit
                lanes.append(UNKNOWN_LANE if kept else Lane(BITS[wanted]))
            elif scenario.keeps_explicit and tensor.explicit:
                lanes.append(lane)
            elif lane.open and role == "parameters" and not (wanted == "float32" and tensor.explicit):
                lanes.append(Lane(BITS[wanted]))
            elif wanted == "float32" or lane.mask & COMPLEX:
                lanes.append(lane)
            else:
                lanes.append(Lane(BITS[wanted], open=lane.open))
        learned = role == "parameters"
        trait = None if learned else tensor.trait
        return Tensor(tuple(lanes), tensor.dim, tensor.origin, explicit=tensor.explicit, leaf=learned, trait=trait)

    def promote(self, a: Dtypes, a_dim: int | None, b: Dtypes, b_dim: int | None) -> Dtypes:
        """``torch.result_type`` in every scenario."""
        key = (a, a_dim, b, b_dim)
        found = self._promotions.get(key)
        if found is None:
            found = tuple(promote_lanes(x, a_dim, y, b_dim) for x, y in zip(a, b, strict=True))
            self._promotions[key] = found
        return found

    def autocast_dtypes(self, dtypes: Dtypes, autocast: Autocast, target: int | None, sure: list[bool]) -> Dtypes:
        """Operand dtypes after autocast's cast to ``target`` (None: the ambient low dtype), where autocast is on.

        ``sure`` says in which scenarios another operand is one that autocast casts: then one that is not known is cast
        too, if the operation runs at all. Otherwise it may be float64, which autocast leaves alone.
        """
        lanes = []
        for lane, ambient, known in zip(dtypes, autocast, sure, strict=True):
            if not ambient.low:
                lanes.append(lane)
            elif ambient.unknown:
                lanes.append(UNKNOWN_LANE)
            else:
                to = target if target is not None else ambient.low
                if not lane.mask:
                    lanes.append(Lane(to) if known else UNKNOWN_LANE)
                elif lane.mask & AUTOCASTABLE & ~to:
                    kept = lane.mask & ~AUTOCASTABLE
                    lanes.append(Lane(to) if not kept else Lane(to | kept, None, lane.assumed, lane.open))
                else:
                    lanes.append(lane._replace(bounded=Bound.NONE) if lane.bounded else lane)
        return tuple(lanes)
