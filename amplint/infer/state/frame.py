"""The state of one running scope: variables, what was returned, what is known of tests."""

from __future__ import annotations

from enum import Enum
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.lattice.answered import ASKED, Answered, Held
from amplint.infer.lattice.joining import element_of, merge, unite
from amplint.infer.lattice.values import NEVER, Origin, Sequence, Tensor, Value
from amplint.infer.state.activation import Activation, Env
from amplint.infer.state.facts import Refused
from amplint.infer.state.meeting import met

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Mapping

    from amplint.infer.lattice.dtypes import Autocast, Dtypes
    from amplint.infer.names.definitions import Class, Enclosing, Instance
    from amplint.infer.names.namespace import Namespace
    from amplint.infer.state.facts import Region
    from amplint.infer.state.session import Session
    from amplint.infer.syntax.bodies import FunctionNode


class Returned(NamedTuple):
    """What a function returned, in which scenarios, and the expression that gave it; ``raised``: in which something had
    surely raised before."""

    live: int
    value: Value
    node: ast.expr | None = None
    raised: int = 0


class Stage(Enum):
    """When something is made that a module holds."""

    BEFORE = "before the model is converted"
    BY_METHOD = "by a method, before that or after it"
    RUNNING = "while the model runs, after that"


class Frame(Activation):
    """An activation that runs."""

    parts: Mapping[int, Value] = MappingProxyType({})
    """What the sides of the conditional that was evaluated last gave, by ``id``."""
    stage = Stage.BEFORE
    """Of the activation that begins to construct an object: when that is made."""
    adding = False
    """Whether what is constructed here becomes part of an object that is put around a layer of a loaded model."""
    definition: FunctionNode | None = None
    """The function that runs."""
    calling: ast.expr | None = None
    """The call that is being followed."""
    repeated: frozenset[str] | None = None
    """Conditions that the function tests more than once; None before that was asked."""
    notes = False
    """Whether anything was ever noted among the variables under a name that no variable has."""
    returns: list[Returned]
    thrown = False
    """Whether the function raises by a statement of its own, or of one that it calls."""
    writes_around = False
    """Whether a variable of a function around this one was assigned to, here or in what was called."""
    making: bool = False
    """Whether the constructor of a module led here, before that can be converted."""
    late: frozenset[str] = frozenset()
    """Variables of the functions around the one that runs that may have changed since it was defined."""

    def __init__(
        self,
        session: Session,
        namespace: Namespace,
        *,
        variables: dict[str, Value] | None = None,
        closure: dict[str, Value] | None = None,
        owner: Class | None = None,
        autocast: Autocast | None = None,
        region: Region | None = None,
        live: int | None = None,
        depth: int = 0,
        in_module: bool = False,
        backward: bool = False,
        constructing: Instance | None = None,
        receiver: Value | None = None,
    ) -> None:
        super().__init__()
        self.session = session
        self.namespace = namespace
        self.owner = owner
        self.autocast = autocast if autocast is not None else session.no_autocast
        self.region = region
        self.live = session.all_lanes if live is None else live
        self.in_module = in_module
        self.backward = backward
        session.frames += 1
        self.number = session.frames
        self.variables = variables if variables is not None else {}
        self.closure = closure or {}
        self.depth = depth
        self.constructing = constructing
        self.receiver = receiver
        self.outer: Enclosing | None = None
        """The activation in which the function that runs was defined."""
        self.shared: dict[str, Enclosing | None] = {}
        """Names that the function says are ``nonlocal``, with the activation that has them, or ``global``."""
        self.reads: set[Hashable] = set()
        """Attributes of objects that were read here and in what was called: another call may find them changed."""
        self.makes: set[int] = set()
        """Objects that were made here and in what was called, by identity: another call makes its own."""
        self.yields: list[tuple[int, Value]] = []
        self.found: set[tuple[Enclosing, str, Hashable]] = set()
        """What such variables held, by key: here, and for functions that were called, those of activations around."""

    def refuse(self, node: ast.expr | ast.stmt, lanes: tuple[int, ...]) -> None:
        """Note an operation that surely raises in some live scenarios, by number."""
        self.raises(lanes)
        self.session.recorder.happened(self, Refused(node, lanes))

    def end(self) -> Env:
        """Where the function is now, and goes on from elsewhere."""
        return Env(self.live, self.variables, self.raised)

    def point(self) -> Env:
        """Where the function is now, kept from what happens next."""
        return Env(self.live, self.variables.copy(), self.raised)

    def go_on(self, point: Env) -> None:
        """Run on from a point."""
        self.live, self.variables, self.raised = point

    def go_back(self, point: Env) -> None:
        """Run on from a point that is kept."""
        self.live, self.variables, self.raised = point.live, point.variables.copy(), point.raised

    def met(self, *points: Env) -> Env:
        """What holds where paths meet."""
        found = points[0] if points else Env(0, {})
        for point in points[1:]:
            found = met(self.session, found, point)
        return found

    def perhaps(self, before: dict[str, Value]) -> None:
        """Go on behind an expression that was evaluated or not, with these variables before it."""
        every = self.session.all_lanes
        self.variables = self.met(Env(every, before), Env(every, self.variables)).variables

    def gives(self, returned: Returned) -> Returned | None:
        """What was returned, in the scenarios in which it still is when ``finally`` has run."""
        live = returned.live & self.live
        return returned._replace(live=live) if live else None

    def managed(self) -> tuple[Autocast, Region | None]:
        """The autocast state, and the region around."""
        return self.autocast, self.region

    def set_back(self, managed: tuple[Autocast, Region | None]) -> None:
        self.autocast, self.region = managed

    def here(self, node: ast.expr | ast.stmt, what: str, dtypes: Dtypes, *parents: Origin | None) -> Origin:
        """An origin at a node of this frame's file."""
        return Origin(
            self.namespace.source,
            node,
            what,
            dtypes,
            tuple(parent for parent in parents if parent is not None),
        )

    def bind(self, name: str, value: Value) -> None:
        """Give a variable a value."""
        self.variables[name] = value
        if self.notes:
            self.forget_written(name)
        if name in self.shared:
            self._bind_outside(name, value)

    def _bind_outside(self, name: str, value: Value) -> None:
        """A variable of the function around this one may hold this now, or what it held before."""
        owner = self.shared[name]
        if owner is None:
            given = self.namespace.given
            known = unite(given[name], value) if name in given else value
            if name not in given or known.key != given[name].key:
                self.session.changed(f"{ASKED}{name}")
            given[name] = known
        else:
            old = owner.variables.get(name)
            owner.bind(name, unite(old, value) if old is not None else value)
            owner.may_raise()
            frame: Frame | None = self
            while frame is not None and frame is not owner:
                frame.writes_around = True
                frame = frame.caller

    def around(self, name: str) -> Value | None:
        """What a variable of the functions around this one holds now."""
        owner = self.outer
        while owner is not None and name not in owner.variables:
            owner = owner.outer
        if owner is None:
            return None
        value = owner.variables[name]
        self.found.add((owner, name, value.key))
        return value

    def lasting(self, name: str) -> bool:
        """Whether nothing but constructors sets an attribute of this name, as far as this file shows."""
        node = self.owner.node if self.owner is not None else None
        if node is None and not self.namespace.own:
            return False
        return name not in self.namespace.attributes_set(node)[1]

    def write(self, owner: str, name: str, value: Value) -> None:
        """Note a tensor just assigned to an attribute of the object in a variable: what the attribute holds from here
        on, whatever it held before. It is kept among the variables, under a name that no variable has."""
        if isinstance(value, Tensor) and self.constructing is None:
            self.variables[f"{owner}.{name}"] = value
            self.notes = True
        elif self.notes:
            self.variables.pop(f"{owner}.{name}", None)

    @property
    def own_name(self) -> str:
        """What the method that runs calls its object."""
        spec = self.definition.args if self.definition is not None else None
        first = [*spec.posonlyargs, *spec.args][:1] if spec is not None else []
        return first[0].arg if first else ""

    def note(self, place: str, value: Value) -> None:
        """Note what a variable, or an attribute of the object in one, was found to hold."""
        self.variables[place] = value
        self.notes = self.notes or "." in place

    def written(self, owner: str, name: str) -> Value | None:
        """What the function last assigned to an attribute of the object in a variable, where that surely holds."""
        return self.variables.get(f"{owner}.{name}") if self.notes else None

    def forget_written(self, owner: str = "") -> None:
        """The variable was bound to something else; or code ran that may assign to attributes of any object."""
        if self.notes:
            for name in [name for name in self.variables if name[0] == ASKED or "." in name]:
                value = self.variables[name]
                if isinstance(value, (Answered, Held)):
                    gone = owner in value.words if owner else any(word[0] == "." for word in value.words)
                elif owner:
                    gone = name.startswith(f"{owner}.")
                else:
                    gone = not self.lasting(name.rpartition(".")[2])
                if gone:
                    del self.variables[name]

    def forget_answers(self, word: str) -> None:
        """What a variable holds may have changed in itself: how tests of it came out no longer holds."""
        for name in [name for name in self.variables if name[0] == ASKED]:
            value = self.variables[name]
            if isinstance(value, (Answered, Held)) and word in value.words:
                del self.variables[name]

    def forget_attribute(self, name: str) -> None:
        """An attribute of this name was assigned to: of another object than those in variables, perhaps."""
        if self.notes:
            word = f".{name}"
            for noted in [noted for noted in self.variables if noted[0] == ASKED or noted.endswith(word)]:
                value = self.variables[noted]
                if not isinstance(value, (Answered, Held)) or word in value.words:
                    del self.variables[noted]

    def result(self) -> Value:
        """What calling the function gives: the join over every return, each in the scenarios that reach it.

        ``NEVER`` where it ends on no path.
        """
        if not self.returns:
            return NEVER
        ends, live, value = self._ends, 0, self.returns[0].value
        for returned in self.returns:
            reaching = returned.live & ~(returned.raised & ends)
            value = merge(self.session, value, live, returned.value, reaching)
            live |= reaching
        return value

    @property
    def failing(self) -> int:
        """The scenarios in which something surely raises before the function returns."""
        return self.back & ~self._ends

    @property
    def _ends(self) -> int:
        """The scenarios in which the function returned on a path on which nothing had surely raised."""
        return reduce(or_, (returned.live & ~returned.raised for returned in self.returns), 0)

    @property
    def back(self) -> int:
        """The scenarios in which the function returned."""
        return reduce(or_, (returned.live for returned in self.returns), 0)


MAX_ITEMS = 32
"""Items of a list that are told apart."""


def grown(frame: Frame, sequence: Sequence, item: Value, *, variable: bool) -> Sequence:
    """A list after ``append``: its items stay known unless that may not have happened, or more than once.

    A ``variable`` has what the path that runs gave it, and where paths meet it is seen that only one appended; an
    object's attribute is the same on all paths.
    """
    certain = variable or frame.branches == 0 or (frame.block != 0 and sequence.made == frame.block)
    if certain and sequence.items is not None and len(sequence.items) < MAX_ITEMS:
        return Sequence((*sequence.items, item), mutable=True, made=sequence.made)
    known = sequence.items is not None
    element = item if known and not sequence.items else unite(element_of(frame.session, sequence), item)
    head = sequence.items if sequence.items is not None else sequence.head
    if not certain:
        return Sequence(None, element, True, head, made=sequence.made)
    between = None if known else sequence.middle
    return Sequence(None, element, True, head, (*sequence.tail, item), sequence.made, between)
