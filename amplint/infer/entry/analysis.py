"""One file's facts: which functions and methods are entered, with what, and what is recorded on the way."""

from __future__ import annotations

import ast
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.entry.drivers import drives
from amplint.infer.entry.functions import autograd_facts, confirm
from amplint.infer.entry.lookups import looked_up
from amplint.infer.entry.roots import roots
from amplint.infer.entry.trainer_hooks import between_steps
from amplint.infer.entry.weight_reach import WeightReach
from amplint.infer.lattice.assumptions import ANY_CALLER, NOTHING_SETTLED, Assumptions, Settled
from amplint.infer.lattice.decorators import Decorated, in_its_regions
from amplint.infer.lattice.dtypes import forget_derived
from amplint.infer.lattice.keying import forget_identities
from amplint.infer.lattice.values import UNKNOWN, Union, Value
from amplint.infer.machine import objects
from amplint.infer.machine.calls import call_value
from amplint.infer.machine.entries import argument_values, construct
from amplint.infer.machine.expressions import evaluate
from amplint.infer.machine.following import execute
from amplint.infer.machine.own_calls import call_around, own_call, takes_what_forward_does
from amplint.infer.machine.running import run_function
from amplint.infer.machine.statements import assign
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.names.namespace import Namespace, Project
from amplint.infer.names.taken_from import taken_from
from amplint.infer.state.dispatch import interpret_by
from amplint.infer.state.facts import FileFacts
from amplint.infer.state.frame import Frame
from amplint.infer.state.record import Recorder
from amplint.infer.state.session import OutOfBudget, Session
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.order import callers_first
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.function_facts import AutogradFunction
    from amplint.source import Source


class _Machine:
    """The interpreter's parts."""

    evaluate = staticmethod(evaluate)
    execute = staticmethod(execute)
    call = staticmethod(call_value)
    get_attribute = staticmethod(objects.get_attribute)
    set_attribute = staticmethod(objects.set_attribute)
    assign = staticmethod(assign)


interpret_by(_Machine())


@lru_cache(maxsize=4)
def _project(
    scenarios: tuple[Scenario, ...], device: str, torch_version: tuple[int, int], assumptions: Assumptions
) -> Project:
    """The project files read so far; values in them depend on all of this."""
    return Project()


def analyse(
    source: Source,
    *,
    scenarios: tuple[Scenario, ...],
    device: str,
    torch_version: tuple[int, int],
    oldest_torch: tuple[int, int] | None = None,
    named: bool = False,
    recorder: Recorder | None = None,
    assumptions: Assumptions = ANY_CALLER,
    settled: Settled = NOTHING_SETTLED,
) -> FileFacts:
    """All facts about one file. Raises SourceError where it does not parse.

    ``scenarios`` starts with the float32 control; ``named``: these are meant, whatever the code shows.
    ``torch_version`` is the release to infer by; ``oldest_torch`` the oldest that the file has to run with, by default
    the same. ``recorder`` is one of the caller's own, for what facts do not keep; which one it is changes nothing else.
    What is ``settled`` is entered with its default alone.
    Ends within a bound of work: what lies beyond it stays unknown.
    """
    forget_derived()
    forget_identities()
    project = _project(scenarios, device, torch_version, assumptions)
    namespace = project.begin(source)
    source = namespace.source
    recorder = recorder or Recorder()
    session = Session(scenarios, device, torch_version, project, recorder, oldest_torch, assumptions, settled)
    functions: list[AutogradFunction] = []
    entries = _entries(session, namespace, functions)
    while _enter_next(session, entries):
        pass
    session.entered.clear()
    return FileFacts(
        source=source,
        path=source.path,
        device=device,
        torch_version=torch_version,
        scenarios=scenarios,
        named=named,
        regions=tuple(recorder.regions.values()),
        trace=tuple(recorder.trace),
        calls=tuple(recorder.calls.values()),
        autograd_functions=tuple(functions),
        casts=tuple(recorder.casts.values()),
        promotions=recorder.promotions(),
        addressed=tuple(recorder.addresses_taken.values()),
        apart=tuple(recorder.drifted_apart.values()),
        branches=tuple(recorder.differing_branches.values()),
        uses=recorder.uses(),
        unhindered=recorder.unhindered,
        refused_calls=frozenset(call for call, fits in recorder.taken.items() if not fits),
        activations=recorder.activations,
        called=recorder.called,
        callers=recorder.callers,
        entered=recorder.entered,
        unfinished=recorder.unfinished,
        layers_called=recorder.layers_called,
        aligned=tuple(recorder.aligned()),
        oldest=oldest_torch,
        changes=frozenset(session.changes),
        followed=project.followed,
        root=project.root_of(source.path),
        weight_reach=WeightReach(session, namespace, session.local_classes.values()),
        taken_from=partial(taken_from, namespace),
    )


def _enter_next(session: Session, entries: Iterator[Callable[[], object]]) -> bool:
    """Enter the next, within a bound of work, and say whether there was one."""
    session.begin_entry()
    with suppress(OutOfBudget, RecursionError):
        enter = next(entries, None)
        if enter is None:
            return False
        enter()
    return True


def _entries(
    session: Session, namespace: Namespace, functions: list[AutogradFunction]
) -> Iterator[Callable[[], object]]:
    """What to run, in order: autograd Functions, classes from the outermost inwards, functions, the module's body."""
    evaluator = objects.binding_evaluator(session)
    top = Frame(session, namespace)
    values: list[Value] = []
    for name in namespace.defined:
        with suppress(OutOfBudget, RecursionError):
            session.begin_entry()
            value = namespace.lookup(name, evaluator) or UNKNOWN
            values += [value] if not isinstance(value, Union) else [o for o in value.options if isinstance(o, Class)]
    defined = [v for v in values if isinstance(v, Class) and v.namespace is namespace]
    if session.assumptions.users:
        functions_defined = [function for value in values for function, _ in _functions_in(value)]
        entered: list[Class | Function] = [*defined, *functions_defined]
        with suppress(RecursionError):
            session.roots.update(id(value.node) for value in roots(namespace, entered))
    yield from _classes_entries(top, defined, functions)
    for function, decorated in _in_order([pair for value in values for pair in _functions_in(value)]):
        if function.namespace is namespace and function.owner is None and _computes(session, function):
            yield partial(_enter, top, function, decorated, None)
    yield lambda: execute(top, [s for s in namespace.tree.body if not isinstance(s, _LOOKED_UP)])
    local = [cls for cls in session.local_classes.values() if cls.namespace is namespace]
    yield from _classes_entries(top, local, functions)
    for cls in (*defined, *local):
        if classes.is_autograd_function(cls) and id(cls.node) in session.applied:
            yield partial(_confirm_function, top, cls, functions)
    yield from _again(session)


def _in_order(found: list[tuple[Function, Value]]) -> list[tuple[Function, Value]]:
    """Functions of a module, callers before what they call."""
    numbers: dict[str, list[int]] = {}
    for number, (function, _) in enumerate(found):
        numbers.setdefault(function.name, []).append(number)
    calls = {
        number: [
            called for name in sorted(function.namespace.body(function.node).names) for called in numbers.get(name, ())
        ]
        for number, (function, _) in enumerate(found)
        if not isinstance(function.node, ast.Lambda)
    }
    return [found[number] for number in callers_first(calls)]


_LOOKED_UP = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
)
"""Statements at the top level that are evaluated when their names are asked for."""


def _classes_entries(
    top: Frame, defined: list[Class], functions: list[AutogradFunction]
) -> Iterator[Callable[[], object]]:
    """Autograd Functions first, then classes that no other constructs, then those."""
    plain = [cls for cls in defined if not classes.is_autograd_function(cls)]
    for cls in defined:
        if classes.is_autograd_function(cls):
            yield partial(_enter_function, top, cls, functions)
    constructed = _constructed(plain)
    roots_first = sorted(plain, key=lambda cls: (id(cls.node) not in top.session.roots, cls.name in constructed))
    for cls in roots_first:
        yield from _class_entries(top, cls)


def _enter_function(top: Frame, cls: Class, functions: list[AutogradFunction]) -> None:
    functions.append(autograd_facts(top, cls))


def _confirm_function(top: Frame, cls: Class, functions: list[AutogradFunction]) -> None:
    if not confirm(top, cls):
        functions[:] = [replace(each, rounded=each.rounded and each.node is not cls.node) for each in functions]


def _constructed(defined: list[Class]) -> set[str]:
    """Names of classes that other classes of the file mention: those are entered through them first."""
    names = {cls.name for cls in defined}
    return {name for cls in defined for name in _mentioned(cls) & names if name != cls.name}


def _mentioned(cls: Class) -> frozenset[str]:
    """Names that a class's body mentions."""
    names: set[str] = set()
    for statement in cls.node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names |= cls.namespace.body(statement).names
        else:
            names.update([node.id for node in nodes_below(statement) if type(node) is ast.Name])
    return frozenset(names)


def _class_entries(top: Frame, cls: Class) -> Iterator[Callable[[], object]]:
    """Construct an instance as nobody in the file is seen to, then call each method that nothing else called.

    What others construct, and call all methods of, needs no instance of its own.
    """
    module = classes.is_module(cls)
    frame = Frame(top.session, top.namespace, in_module=module)
    made = _Made(frame, cls)
    constructor = classes.find_member(cls, "__init__")
    if not isinstance(constructor, Function) or id(constructor.node) not in top.session.called_under:
        yield made.instance
    inherited = _inherited_forward(cls) if module else None
    if inherited is not None:
        yield partial(_enter, frame, inherited, inherited, made, module=True, inherits=True)
    for name in _methods_in_order(cls):
        member = cls.members[name]
        if name == "__call__" and "forward" in cls.members and takes_what_forward_does(cls):
            continue
        for function, decorated in _functions_in(member):
            kind = _kind(member)
            receiver = None if kind == "static" else cls if kind == "class" else made
            yield partial(_enter, frame, function, decorated, receiver, module=module)
    yield from _again(top.session)


class _Made:
    """An object of a class, constructed when it is asked for."""

    def __init__(self, frame: Frame, cls: Class) -> None:
        self._frame = frame
        self._cls = cls
        self._instance: Instance | None = None

    def instance(self) -> Instance:
        if self._instance is None:
            self._instance = Instance(self._cls, {}, classes.has_unknown_base(self._cls))
            construct(self._frame, self._instance)
        return self._instance


def _inherited_forward(cls: Class) -> Function | None:
    """What calling a module of the class runs where a base has it, and asks for methods that the class itself has."""
    found = classes.find_member(cls, "forward") if "forward" not in cls.members else None
    if not isinstance(found, Function) or isinstance(found.node, ast.Lambda):
        return None
    own = {name for name, member in cls.members.items() if any(_functions_in(member)) and name != "__init__"}
    return found if own.intersection(_asked(found)) else None


def _methods_in_order(cls: Class) -> list[str]:
    """Names of a class's methods but its constructor: what a call of the object runs, then callers before what they
    call."""
    names = sorted(cls.members, key=lambda name: name not in ("forward", "__call__"))
    calls: dict[str, list[str]] = {}
    for name in names:
        functions = [function for function, _ in _functions_in(cls.members[name])] if name != "__init__" else []
        calls[name] = [called for function in functions for called in _asked(function) if called in cls.members]
    return [name for name in callers_first(calls) if name != "__init__"]


def _asked(function: Function) -> tuple[str, ...]:
    """Attributes of its object that a method names."""
    return function.namespace.body(function.node).asked if not isinstance(function.node, ast.Lambda) else ()


def _computes(session: Session, function: Function) -> bool:
    return not isinstance(function.node, ast.Lambda) and function.namespace.body(function.node).computes


def _kind(member: Value) -> str | None:
    return member.kind if isinstance(member, Decorated) else None


def _functions_in(value: Value) -> Iterator[tuple[Function, Value]]:
    """The function under a value's decorators, and the value to call."""
    inner = value
    while isinstance(inner, Decorated):
        inner = inner.function
    if isinstance(inner, Function) and not isinstance(inner.node, ast.Lambda):
        yield inner, value


def _enter(
    top: Frame,
    function: Function,
    decorated: Value,
    holder: _Made | Class | None,
    *,
    module: bool = False,
    inherits: bool = False,
) -> None:
    """Call a function with what a caller may pass, under the scenario's ambient autocast; one that a class inherits
    runs other methods than its base's."""
    session = top.session
    assert not isinstance(function.node, ast.Lambda)
    seen = id(function.node) in session.ran or id(function.node) in session.told
    if seen and not inherits and function.node.lineno not in session.settled.open:
        return
    receiver = holder.instance() if isinstance(holder, _Made) else holder
    outside = between_steps(function) or (not module and drives(function, session.drivers))
    ambient = session.no_autocast if outside else session.ambient
    called = isinstance(receiver, Instance) and function.name == "forward" and takes_what_forward_does(receiver.cls)
    first = own_call(receiver.cls) if called and isinstance(receiver, Instance) else None
    autocast, region = session.called_under.get(id((first or function).node), (ambient, None))
    frame = Frame(
        session,
        top.namespace,
        autocast=autocast,
        region=region,
        live=_without_autocast(session) if _is_for_other_files(function) else None,
        in_module=module or id(function.node) in session.of_modules,
        owner=function.owner,
    )
    rows = looked_up(frame, function, receiver) if isinstance(receiver, Instance) else frozenset()
    inputs = argument_values(frame, function, skip=0 if receiver is None else 1, rows=rows)
    arguments = inputs if receiver is None else inputs.shifted((receiver, None))
    entered = function.owner.node if function.owner is not None else function.node
    from_user = id(entered) in session.roots and (function.owner is None or function.name in ("forward", "__call__"))
    entry = _Entry(
        frame, frame.live, function, decorated, arguments, receiver, from_user, module, inputs if called else None
    )
    session.entered.append(entry)
    entry()


@dataclass(slots=True)
class _Entry:
    """A call of a function as nobody in the file is seen to make it."""

    frame: Frame
    live: int
    function: Function
    decorated: Value
    arguments: Arguments
    receiver: Value | None
    from_user: bool
    by_module: bool
    inputs: Arguments | None = None
    """What the object itself is called with, whose own ``__call__`` runs around the function."""
    version: int = 0

    def __call__(self) -> None:
        frame, session, plain = self.frame, self.frame.session, self.decorated
        self.version, frame.live = session.version, self.live
        session.from_user, session.by_module = self.from_user, self.by_module
        if isinstance(self.receiver, Instance) and self.inputs is not None:
            if call_around(frame, self.receiver, self.inputs, _anchor(self.function)) is not None:
                return
            frame.live = self.live
        again = id(self.function.node) in session.ran
        while isinstance(plain, Decorated) and plain.of_no_effect:
            plain = plain.function
        if isinstance(plain, Decorated):
            call_value(frame, plain, self.arguments, _anchor(self.function))
        if again or id(self.function.node) not in session.ran:
            body = in_its_regions(self.decorated)
            if isinstance(body, Decorated):
                call_value(frame, body, self.arguments, _anchor(self.function))
            else:
                run_function(frame, self.function, self.arguments, receiver=self.receiver)

    @property
    def stale(self) -> bool:
        """Whether objects have changed since in what the call read of them, so that another finds something else."""
        return self.frame.session.changed_since(self.version, self.frame.reads)


ROUNDS = 2
"""Times that what has become stale is run again."""


def _again(session: Session) -> Iterator[Callable[[], object]]:
    """What ran on objects that hold something else by now: a second call finds what the first, or others, left."""
    for _ in range(ROUNDS):
        stale = [entry for entry in session.entered if entry.stale]
        if not stale:
            break
        yield from stale


def _without_autocast(session: Session) -> int:
    """The scenarios that have no autocast, a bit each."""
    return sum(1 << number for number, scenario in enumerate(session.scenarios) if not scenario.autocast)


def _is_for_other_files(function: Function) -> bool:
    """Whether a function is private and its own file has no use for it: what autocast is on where others of its package
    call it is theirs to choose."""
    private = function.owner is None and function.name.startswith("_") and not function.name.endswith("__")
    plain = not isinstance(function.node, ast.Lambda) and not function.node.decorator_list
    return private and plain and function.name not in _names_used(function.namespace.tree)


@lru_cache(maxsize=2)
def _names_used(tree: ast.Module) -> frozenset[str]:
    return frozenset([node.id for node in nodes_below(tree) if type(node) is ast.Name])


def _anchor(function: Function) -> ast.expr:
    node = function.node
    assert not isinstance(node, ast.Lambda)
    return ast.copy_location(ast.Name(node.name), node)
