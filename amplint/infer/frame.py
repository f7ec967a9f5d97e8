"""The state of one running scope: variables, which scenarios reach here, autocast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.answers import ASKED, Answered
from amplint.infer.contexts import AutocastFlag, AutogradContext
from amplint.infer.dtypes import Autocast, Dtypes, join, select
from amplint.infer.traits import joined_trait
from amplint.infer.values import (
    NEVER,
    NONE,
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Mapping,
    Number,
    Origin,
    Sequence,
    Tensor,
    Union,
    Value,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable
    from collections.abc import Sequence as Items

    from amplint.infer.arguments import Arguments
    from amplint.infer.catching import Catch
    from amplint.infer.definitions import Class, Enclosing, FunctionNode, Instance
    from amplint.infer.facts import Region
    from amplint.infer.meeting import Env
    from amplint.infer.namespace import Namespace
    from amplint.infer.reached import Failure
    from amplint.infer.session import Session

MAX_UNITED = 24
"""Values, of a registry say, that are looked at to find out whether they are alike."""
MAX_OPTIONS = 8
"""Alternatives of a union that are followed; with more it is unknown."""


class Frame:
    """One function's activation, or a module's top level.

    ``live`` has a bit for each scenario that reaches the current statement. ``returns`` collects what is returned and
    in which scenarios. ``in_module`` says that the code runs as part of an ``nn.Module``, where the scenario's ambient
    autocast is around it.
    """

    adding = False
    """Whether what is constructed here becomes part of an object that is put around a layer of a loaded model."""
    branches = 0
    block = 0
    """``id`` of the statements of the branch or loop body that runs, 0 outside of all."""
    path: tuple[int, ...] = ()
    """The branches that run and might not, each by ``id`` of its statements, outermost first."""
    caller: Frame | None = None
    statement: ast.stmt | None = None
    function = 0
    """``id`` of the function node that runs, 0 at the top level of a module."""
    definition: FunctionNode | None = None
    """The function that runs."""
    calling: ast.expr | None = None
    """The call that is being followed."""
    left: tuple[Frame, ast.expr] | None = None
    """In another file than the one that is checked: the last of its frames, and the call by which it was left."""
    repeated: frozenset[str] | None = None
    """Conditions that the function tests more than once; None before that was asked."""
    notes = False
    """Whether anything was ever noted among the variables under a name that no variable has."""
    leaves: list[Env] | None = None
    """Where the function is left by ``return``, where that is asked for: inside a ``try`` with ``finally``, and in
    a function with others inside it, which may run when it has ended."""
    catches: tuple[Catch, ...] = ()
    """What is run where something raises here."""
    thrown = False
    """Whether the function raises by a statement of its own, or of one that it calls."""
    outer: Enclosing | None = None
    """The activation in which the function that runs was defined."""
    writes_around = False
    """Whether a variable of a function around this one was assigned to, here or in what was called."""
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
        self.session = session
        session.frames += 1
        self.number = session.frames
        """Tells activations apart."""
        self.namespace = namespace
        self.variables = variables if variables is not None else {}
        self.closure = closure or {}
        self.owner = owner
        self.autocast = autocast if autocast is not None else session.no_autocast
        self.region = region
        self.live = session.all_lanes if live is None else live
        self.depth = depth
        self.in_module = in_module
        self.backward = backward
        self.constructing = constructing
        self.receiver = receiver
        self.failures: list[Failure] = []
        """What raises here, or in a function that was called here."""
        self.returns: list[tuple[int, Value]] = []
        self.returned: list[ast.expr | None] = []
        """The expressions that gave ``returns``."""
        self.breaks: list[Env] = []
        """Where the loop that runs is left by ``break``."""
        self.continues: list[Env] = []
        """Where the next pass of the loop that runs is begun by ``continue``."""
        self.shared: dict[str, Enclosing | None] = {}
        """Names that the function says are ``nonlocal``, with the activation that has them, or ``global``."""
        self.reads: set[Hashable] = set()
        """Attributes of objects that were read here and in what was called: another call may find them changed."""
        self.yields: list[tuple[int, Value]] = []
        self.found: set[tuple[Enclosing, str, Hashable]] = set()
        """What such variables held, by key: here, and for functions that were called, those of activations around."""

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

    def may_raise(self, *, thrown: bool = False) -> None:
        """Note that what runs next may raise; ``thrown``: by a statement that does nothing else."""
        for catch in self.catches:
            catch.note(self, thrown=thrown)

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

    def written(self, owner: str, name: str) -> Value | None:
        """What the function last assigned to an attribute of the object in a variable, where that surely holds."""
        return self.variables.get(f"{owner}.{name}") if self.notes else None

    def forget_written(self, owner: str = "") -> None:
        """The variable was bound to something else; or code ran that may assign to attributes of any object."""
        if self.notes:
            for name in [name for name in self.variables if name[0] == ASKED or "." in name]:
                value = self.variables[name]
                if isinstance(value, Answered):
                    gone = owner in value.words if owner else any(word[0] == "." for word in value.words)
                else:
                    gone = name.startswith(owner and f"{owner}.")
                if gone:
                    del self.variables[name]

    def forget_answers(self, word: str) -> None:
        """What a variable holds may have changed in itself: how tests of it came out no longer holds."""
        for name in [name for name in self.variables if name[0] == ASKED]:
            value = self.variables[name]
            if isinstance(value, Answered) and word in value.words:
                del self.variables[name]

    def forget_attribute(self, name: str) -> None:
        """An attribute of this name was assigned to: of another object than those in variables, perhaps."""
        if self.notes:
            word = f".{name}"
            for noted in [noted for noted in self.variables if noted[0] == ASKED or noted.endswith(word)]:
                value = self.variables[noted]
                if not isinstance(value, Answered) or word in value.words:
                    del self.variables[noted]

    def result(self) -> Value:
        """What calling the function gives: the join over every return, each in the scenarios that reach it.

        ``NEVER`` where it ends on no path.
        """
        if not self.returns:
            return NEVER
        live, value = self.returns[0]
        for other_live, other in self.returns[1:]:
            value = merge(self.session, value, live, other, other_live)
            live |= other_live
        return value


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression."""
    return frame.session.machine.evaluate(frame, node)


def execute(frame: Frame, body: Items[ast.stmt]) -> None:
    """Run statements."""
    frame.session.machine.execute(frame, body)


def call(frame: Frame, callee: Value, arguments: Arguments, node: ast.expr) -> Value:
    """Call a value; ``node`` is where findings about the call lie."""
    return frame.session.machine.call(frame, callee, arguments, node)


def get_attribute(frame: Frame, value: Value, name: str, node: ast.expr) -> Value:
    """``value.name``."""
    return frame.session.machine.get_attribute(frame, value, name, node)


def set_attribute(frame: Frame, value: Value, name: str, new: Value) -> None:
    """``value.name = new``."""
    frame.session.machine.set_attribute(frame, value, name, new)


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a target to a value."""
    frame.session.machine.assign(frame, target, value)


def merge(session: Session, a: Value, a_live: int, b: Value, b_live: int) -> Value:
    """The value after two paths meet, each live in some scenarios."""
    if a is b:
        return a
    if not b_live:
        return a
    if not a_live:
        return b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return join_tensors(a, a_live, b, b_live)
    if isinstance(a, DTypeValue) and isinstance(b, DTypeValue):
        return _join_dtypes(a, a_live, b, b_live)
    if a.key == b.key:
        return a
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return _join_sequences(session, a, a_live, b, b_live)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = {**a.items, **b.items}
        session.spend(len(keys))
        items = {
            k: merge(session, a.items.get(k, NONE), a_live, b.items.get(k, NONE), b_live)
            if k in a.items and k in b.items
            else a.items.get(k, b.items.get(k, UNKNOWN))
            for k in keys
        }
        loose = a.loose or b.loose or list(a.items) != list(b.items)
        return Mapping(items, a.other or b.other, loose=loose, maker=session.frames)
    numbers = (Const, Number)
    if isinstance(a, numbers) and isinstance(b, numbers):
        kinds = {number_kind(a), number_kind(b)}
        if None not in kinds and "str" not in kinds:
            return Number("float" if "float" in kinds else "int" if "int" in kinds else "bool")
    if isinstance(a, Device) and isinstance(b, Device):
        return Device(None)
    if isinstance(a, AutogradContext):
        return a
    if isinstance(a, AutocastFlag) and isinstance(b, AutocastFlag):
        return AutocastFlag(a.on & a_live | b.on & b_live, a.off & a_live | b.off & b_live)
    return unite(a, b)


def number_kind(value: Const | Number) -> str | None:
    """bool, int, float, or None for what is no number."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value.value, bool):
        return "bool"
    if isinstance(value.value, int):
        return "int"
    if isinstance(value.value, float):
        return "float"
    return None


def join_tensors(a: Tensor, a_live: int, b: Tensor, b_live: int) -> Tensor:
    """Two tensors that meet, lane by lane."""
    if a_live == b_live:
        dtypes = join(a.dtypes, b.dtypes)
    else:
        dtypes = select(a_live & b_live, join(a.dtypes, b.dtypes), select(a_live, a.dtypes, b.dtypes))
    if dtypes == a.dtypes:
        origin = a.origin
    elif dtypes == b.dtypes:
        origin = b.origin
    else:
        origins = tuple(o for o in (a.origin, b.origin) if o is not None)
        origin = Origin(origins[0].source, origins[0].node, "", dtypes, origins) if origins else None
    return Tensor(
        dtypes,
        a.dim if a.dim == b.dim else None,
        origin,
        a.maybe or b.maybe,
        a.explicit and b.explicit,
        a.leaf and b.leaf,
        a.gradient or b.gradient,
        trait=joined_trait(a.trait, b.trait),
        unsure=a.unsure or b.unsure,
    )


def _join_dtypes(a: DTypeValue, a_live: int, b: DTypeValue, b_live: int) -> DTypeValue:
    joined = select(a_live & b_live, join(a.dtypes, b.dtypes), select(a_live, a.dtypes, b.dtypes))
    return DTypeValue(joined, a.written and b.written, a.origin or b.origin)


def _join_sequences(session: Session, a: Sequence, a_live: int, b: Sequence, b_live: int) -> Sequence:
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        session.spend(len(a.items))
        items = tuple(merge(session, x, a_live, y, b_live) for x, y in zip(a.items, b.items, strict=True))
        return Sequence(items, mutable=a.mutable)
    if not a.items and a.items is not None:
        return Sequence(None, element_of(session, b), b.mutable)
    if not b.items and b.items is not None:
        return Sequence(None, element_of(session, a), a.mutable)
    return Sequence(None, merge(session, element_of(session, a), a_live, element_of(session, b), b_live), a.mutable)


def element_of(session: Session, sequence: Sequence) -> Value:
    """The join of a sequence's items."""
    if sequence.items is None:
        return sequence.element
    if not sequence.items:
        return UNKNOWN
    session.spend(len(sequence.items))
    value = sequence.items[0]
    for item in sequence.items[1:]:
        value = merge(session, value, session.all_lanes, item, session.all_lanes)
    return value


MAX_ITEMS = 32
"""Items of a list that are told apart."""
MAX_LENGTH = 4_096
"""Items of a sequence made of others up to which they are told apart."""


def concatenated(session: Session, a: Sequence, b: Sequence) -> Sequence:
    """The items of one sequence behind those of another, as a sequence of the first one's kind."""
    if a.items is not None and b.items is not None and len(a.items) + len(b.items) <= MAX_LENGTH:
        return Sequence(a.items + b.items, mutable=a.mutable)
    return Sequence(None, unite(element_of(session, a), element_of(session, b)), a.mutable)


def grown(frame: Frame, sequence: Sequence, item: Value) -> Sequence:
    """A list after ``append``: its items stay known unless that may not have happened, or more than once."""
    certain = frame.branches == 0 or (frame.block != 0 and sequence.made == frame.block)
    if certain and sequence.items is not None and len(sequence.items) < MAX_ITEMS:
        return Sequence((*sequence.items, item), mutable=True, made=sequence.made)
    known = sequence.items is not None
    element = item if known and not sequence.items else unite(element_of(frame.session, sequence), item)
    head = sequence.items if sequence.items is not None else sequence.head
    return Sequence(None, element, True, head, (*sequence.tail, item) if certain else (), sequence.made)


def unite(*values: Value) -> Value:
    """A union of values that do not join, flat and without repetition."""
    if len(values) == 1:
        return values[0]
    if len(values) > MAX_UNITED:
        return UNKNOWN
    distinct: dict[Hashable, Value] = {}
    for value in values:
        for option in value.options if isinstance(value, Union) else (value,):
            distinct.setdefault(option.key, option)
    options = list(distinct.values())
    if len(options) == 1:
        return options[0]
    tensors = [o for o in options if isinstance(o, Tensor)]
    if len(tensors) > 1:
        joined: Tensor = tensors[0]
        for tensor in tensors[1:]:
            joined = join_tensors(joined, -1, tensor, -1)
        options = [joined, *(o for o in options if not isinstance(o, Tensor))]
    dtypes = [o for o in options if isinstance(o, DTypeValue)]
    if len(dtypes) > 1:
        either = dtypes[0]
        for dtype in dtypes[1:]:
            either = _join_dtypes(either, -1, dtype, -1)
        options = [either, *(o for o in options if not isinstance(o, DTypeValue))]
    if len(options) == 1:
        return options[0]
    return Union(tuple(options)) if len(options) <= MAX_OPTIONS and _is_small(options) else UNKNOWN


MAX_NESTED = 150
"""Values nested in a union: lists of lists that a loop keeps wrapping would grow without end."""


def _is_small(options: list[Value]) -> bool:
    pending = list(options)
    seen = 0
    while pending:
        seen += 1
        if seen > MAX_NESTED:
            return False
        value = pending.pop()
        if isinstance(value, Union):
            pending.extend(value.options)
        elif isinstance(value, Sequence):
            pending.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Mapping):
            pending.extend(value.items.values())
    return True


def options_of(value: Value) -> tuple[Value, ...]:
    """The alternatives of a value."""
    return value.options if isinstance(value, Union) else (value,)
