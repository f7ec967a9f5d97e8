"""Whether the calls that a project has of a function pass, or leave at its default, what a line of it is not run with.

So it is of a constructor, where a method tests the attribute that holds the argument.

The calls are followed from where the project makes an object of the class, or mentions the function, to where it calls
them; what hands on a parameter of its own passes what its own calls do. Where one is not understood, none is seen, or a
package exports what is called, anything may be passed.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard

from amplint.infer.lattice.assumptions import NOTHING_SETTLED, Settled
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.modules import of_every_module
from amplint.project.callees import callee_of
from amplint.project.calls import Called, calls_by, calls_of_own, functions, is_of_base
from amplint.project.demands import Demand, Demanded, constants, demanded
from amplint.project.mentions import Function, definitions, local_names
from amplint.project.scopes import is_installed
from amplint.project.unusable import spellings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.project.mentions import Definition, Mention
    from amplint.source import Source

MAX_FUNCTIONS = 12
"""Functions that hand on a parameter, of which it is asked who calls them."""


class Need(NamedTuple):
    """What an argument is demanded to be where a place is run, and where something else is stored in its stead."""

    demands: tuple[Demand, ...]
    stored: tuple[tuple[Demand, ...], ...] = ()
    default: tuple[object] | None = None
    """What the argument is where nothing passes it on, if that is a constant."""

    def allows(self, value: object) -> bool:
        """Whether the place is run with a constant, or may be."""
        ways = (self.demands, *self.stored)
        return any(all(demand.allows(value) for demand in demands) for demands in ways)

    def through(self, function: Function, parameter: str) -> Need:
        """The same of a parameter that a function passes on, or tests."""
        return self._replace(stored=(*self.stored, *_stored(function, parameter)))


class ProjectFiles(Protocol):
    """What is asked of the files of a project."""

    @property
    def file(self) -> Source:
        """The one that is judged."""
        ...

    def users(self, file: Source, name: str) -> list[tuple[Source, Mention]] | None:
        """The mentions of what a file defines; None where they are too many."""
        ...

    def spelling(self, word: str) -> list[Source] | None:
        """The files that have a word; None where they are too many."""
        ...

    def is_exported(self, file: Source, name: str) -> bool:
        """Whether a package has what a file defines for others to use."""
        ...

    def is_left(self, file: Source, mention: Mention) -> bool:
        """Whether nothing in the project uses what mentions a name."""
        ...

    def is_set(self, name: str) -> bool:
        """Whether something sets an attribute of an object that is not its own."""
        ...

    def is_module(self, file: Source, cls: ast.ClassDef) -> bool:
        """Whether a class is a module, and of torch's own classes alone."""
        ...


class Passed:
    """What a project passes to the functions of one file."""

    def __init__(self, project: ProjectFiles) -> None:
        self._project = project
        self._known: dict[int, list[tuple[Called | None, ast.Call]] | None] = {}
        """By ``id`` of a function, its calls."""
        self._mentioned: dict[int, bool] = {}
        """By ``id`` of a function or class, whether only places that lack an argument mention it."""

    def lack(self, file: Source, row: int, column: int | None = None) -> bool:
        """Whether a place is run only where a function, or the constructor of its object, gets an argument that none of
        its calls passes; one is seen. Without a column, all of the row is."""
        for holder in definitions(file.tree).values():
            if not holder.lineno <= row <= (holder.end_lineno or row):
                continue
            for function in functions(holder):
                called = Called(file, holder, function)
                if any(self._is_never(called, name, need, set()) for name, need in _needed(function, row, column)):
                    return True
            if self._is_chosen_never(file, holder, row, column):
                return True
            method = next((f for f in functions(holder) if f.lineno <= row <= (f.end_lineno or row)), None)
            if isinstance(holder, ast.ClassDef) and method is not None and self._is_called_never(file, holder, method):
                return True
            if self._is_mentioned_never(file, holder):
                return True
        return False

    def _is_mentioned_never(self, file: Source, holder: Definition) -> bool:
        """Whether all that mentions a function or class, but itself, is a place that lacks an argument."""
        if id(holder) not in self._mentioned:
            self._mentioned[id(holder)] = False
            users = () if self._project.is_exported(file, holder.name) else self._project.users(file, holder.name) or ()
            others = [(user, mention) for user, mention in users if mention.definition is not holder]
            self._mentioned[id(holder)] = bool(others) and all(
                mention.definition is not None and self.lack(user, mention.row, mention.column)
                for user, mention in others
            )
        return self._mentioned[id(holder)]

    def settled(self, file: Source) -> Settled:
        """The parameters of the functions of a file that all calls of these leave at a constant, or pass that, one call
        of each being seen; and the attributes that hold them, or in a program any that a test asks for, which nothing
        but methods of their own object sets."""
        found, kept, asked = set(), Counter[str](), _asked(file.tree)
        every = [Called(file, holder, f) for holder in definitions(file.tree).values() for f in functions(holder)]
        for called in every:
            row, function = called.function.lineno, called.function
            for name, default in _defaults(function).items():
                need = Need((Demand(ast.IsNot, default[0], holds=True),))
                if name in asked and self._is_never(called, name, need, set()):
                    found.add((row, name))
            if function.name == "__init__":
                kept.update(a for a, of in _kept(called.holder, function).items() if (row, of) in found)
        stored = Counter(node.attr for node in nodes_below(file.tree) if _is_stored(node)) if kept else {}
        held = {name for name, number in kept.items() if stored[name] == number}
        held |= _tested(file.tree) if not is_installed(file.path) else set()
        attributes = frozenset(name for name in held if not self._project.is_set(name))
        if not found and not attributes:
            return NOTHING_SETTLED
        others = frozenset(called.function.lineno for called in every if self._is_for_others(called))
        return Settled(frozenset(found), attributes, others)

    def _is_for_others(self, called: Called) -> bool:
        """Whether other files may call a function, or a method of a class."""
        holder, name = called.holder, called.function.name
        if isinstance(holder, ast.ClassDef) and name not in ("forward", "__init__"):
            sources = self._project.spelling(name)
            others = (source for source in sources or () if source is not called.file)
            return sources is None or any(spellings_of(other.tree, name, holder.name) for other in others)
        users = self._project.users(called.file, holder.name)
        return users is None or any(user is not called.file for user, _ in users)

    def _is_chosen_never(self, file: Source, holder: Definition, row: int, column: int | None) -> bool:
        maker = next((function for function in functions(holder) if function.name == "__init__"), None)
        return maker is not None and any(
            self._is_never(Called(file, holder, maker), name, need, set()) and not self._project.is_set(attribute)
            for attribute, name, need in _chosen(holder, maker, row, column)
        )

    def _is_called_never(self, file: Source, cls: ast.ClassDef, method: Function) -> bool:
        """Whether only the class itself calls a method of its objects, each time where what it chooses never leads; or
        nothing at all does, and nobody else can, as in programs."""
        if method.decorator_list or of_every_module(method.name) or method.name.startswith("__"):
            return False
        calls = self.calls_of_method(file, cls, method)
        if calls == []:
            return not is_installed(file.path) and self._project.is_module(file, cls)
        return calls is not None and all(
            self._is_chosen_never(file, cls, call.lineno, call.col_offset) for _, call in calls
        )

    def calls_of_method(
        self, file: Source, cls: ast.ClassDef, method: Function
    ) -> list[tuple[Called, ast.Call]] | None:
        """The calls of a method, if only the class itself calls it, of its own object; None where others may: with
        arguments that it takes, unlike ``text.encode()``."""
        sources = self._project.spelling(method.name)
        spelled = [(s, node) for s in sources or () for node in spellings_of(s.tree, method.name, cls.name)]
        callee = callee_of(file, cls, method.name)
        strange = {
            id(call.func)
            for source in {s.path: s for s, _ in spelled}.values()
            for call in nodes_of_kind(source.tree, ast.Call)
            if callee is not None and getattr(call.func, "attr", "") == method.name and callee.refuses(call)
        }
        calls = [(Called(file, cls, f), call) for f in functions(cls) for call in calls_of_own(f, method.name)]
        own = {id(call.func) for _, call in calls}
        known = all(id(node) in strange or (source is file and id(node) in own) for source, node in spelled)
        return calls if sources is not None and known else None

    def _is_never(self, called: Called, parameter: str, need: Need, seen: set[tuple[int, str]]) -> bool:
        """Whether no call of a function passes for a parameter what is needed."""
        key = (id(called.function), parameter)
        if key in seen:
            return True
        seen.add(key)
        holder = called.holder
        if len(seen) > MAX_FUNCTIONS or holder.decorator_list or self._project.is_exported(called.file, holder.name):
            return False
        if id(called.function) not in self._known:
            self._known[id(called.function)] = self._calls(called)
        calls = self._known[id(called.function)]
        if not calls:
            return False
        return all(self._passes_none(caller, call, called, parameter, need, seen) for caller, call in calls)

    def _passes_none(
        self,
        caller: Called | None,
        call: ast.Call,
        called: Called,
        parameter: str,
        need: Need,
        seen: set[tuple[int, str]],
    ) -> bool:
        """Whether what a call passes for a parameter, or its default, is not what is needed."""
        if any(isinstance(a, ast.Starred) for a in call.args):
            return False
        given = dict(zip(_positional(called), call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        declared = parameter in _parameters(called.function)
        default = _defaults(called.function).get(parameter) if declared else need.default
        further = [keyword.value for keyword in call.keywords if keyword.arg is None]
        if further and parameter not in given:
            if caller is None or not all(_is_handed_on(caller.function, value, parameter) for value in further):
                return False
            return self._is_never(caller, parameter, need._replace(default=default), seen)
        passed = constants(given[parameter]) if parameter in given else default
        if passed is not None:
            return not need.allows(passed[0])
        own = getattr(given.get(parameter), "id", "")
        if caller is None or own not in _parameters(caller.function):
            return False
        return self._is_never(caller, own, need.through(caller.function, own), seen)

    def _calls(self, called: Called) -> list[tuple[Called | None, ast.Call]] | None:
        """The calls of a function in the project, each with the function that has it; None where one may be missing."""
        cls = called.holder if isinstance(called.holder, ast.ClassDef) else None
        if cls is not None and called.function.name not in ("forward", "__init__"):
            return [*(self.calls_of_method(called.file, cls, called.function) or ())] or None
        made = cls is not None and called.function.name == "forward"
        found: list[tuple[Called | None, ast.Call]] = []
        for file, mention in self._project.users(called.file, called.holder.name) or ():
            user = mention.definition
            if (user is called.holder and file is called.file) or self._project.is_left(file, mention):
                continue
            if isinstance(user, ast.ClassDef) and mention.method is None and not (mention.called or made):
                calls = self._calls_of_derived(called, file, user, local_names(file.tree, called.holder.name))
            else:
                calls = calls_by(file, mention, called.holder.name, made=made)
            if calls is None:
                return None
            found += calls
        return found

    def _calls_of_derived(
        self, called: Called, file: Source, derived: ast.ClassDef, names: frozenset[str]
    ) -> list[tuple[Called | None, ast.Call]] | None:
        """The calls of a constructor by a class that mentions its class, as a base; None where one may be missing."""
        is_base = any(getattr(base, "id", getattr(base, "attr", "")) in names for base in derived.bases)
        if not is_base or derived.decorator_list or self._project.is_exported(file, derived.name):
            return None
        maker = next((function for function in functions(derived) if function.name == "__init__"), None)
        if maker is None:
            return self._calls(Called(file, derived, called.function)) or None
        return [(Called(file, derived, maker), call) for call in nodes_below(maker) if is_of_base(call)]


def _is_handed_on(function: Function, value: ast.expr, parameter: str) -> bool:
    """Whether what a call passes by ``**`` are the keywords that the function itself gets and has no name for."""
    keywords = function.args.kwarg.arg if function.args.kwarg is not None else ""
    if getattr(value, "id", None) != keywords or parameter in _parameters(function):
        return False
    mentions = sum(isinstance(node, ast.Name) and node.id == keywords for node in nodes_below(function))
    read = sum(_only_reads(node, keywords) for node in nodes_below(function))
    return mentions == read


def _only_reads(node: ast.AST, keywords: str) -> bool:
    """Whether a node mentions the keywords of its function and leaves them as they are, or takes some away."""
    if isinstance(node, ast.keyword):
        return node.arg is None and getattr(node.value, "id", "") == keywords
    if isinstance(node, ast.Compare):
        return any(getattr(other, "id", "") == keywords for other in node.comparators)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and getattr(node.value, "id", "") == keywords
    method = node.func if isinstance(node, ast.Call) else None
    of = getattr(method.value, "id", "") if isinstance(method, ast.Attribute) else ""
    return isinstance(method, ast.Attribute) and of == keywords and method.attr in ("get", "pop", "keys", "items")


def _needed(function: Function, row: int, column: int | None) -> Iterator[tuple[str, Need]]:
    """What is demanded of the parameters of a function for a place to be run."""
    at = (each for each in _demanded(function) if each.covers(row, column))
    yield from ((name, Need(demands).through(function, name)) for name, demands in _by_name(at).items())


@once_for_each_node
def _demanded(function: ast.AST) -> list[Demanded]:
    """What the tests of a function demand of its parameters."""
    assert isinstance(function, Function)
    names = _parameters(function)

    def parameter(node: ast.expr) -> str | None:
        return node.id if isinstance(node, ast.Name) and node.id in names else None

    return [*demanded(function.body, parameter)]


def _by_name(found: Iterable[Demanded]) -> dict[str, tuple[Demand, ...]]:
    by_name: dict[str, tuple[Demand, ...]] = {}
    for each in found:
        by_name[each.name] = (*by_name.get(each.name, ()), each.demand)
    return by_name


def _chosen(cls: Definition, maker: Function, row: int, column: int | None) -> Iterator[tuple[str, str, Need]]:
    """What is demanded of the arguments of a constructor for a place to be run, behind the attributes that hold them
    and that methods test: attribute, parameter and demands."""
    kept = _kept(cls, maker)
    for method in functions(cls) if kept else ():
        if method is maker or not method.lineno <= row <= (method.end_lineno or row) or not method.args.args:
            continue
        own = method.args.args[0].arg

        def option(node: ast.expr, own: str = own) -> str | None:
            held = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == own
            return node.attr if held and isinstance(node, ast.Attribute) and node.attr in kept else None

        found = _by_name(each for each in demanded(method.body, option) if each.covers(row, column))
        for attribute, demands in found.items():
            yield attribute, kept[attribute], Need(demands).through(maker, kept[attribute])


def _kept(cls: Definition, maker: Function) -> dict[str, str]:
    """By attribute of an object, the parameter of its constructor that it holds and nothing in the class changes."""
    own = maker.args.args[0].arg if maker.args.args else ""
    counts = Counter(node.attr for node in nodes_below(cls) if _is_stored(node))
    found = {}
    for statement in maker.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        held = statement.value.id if isinstance(statement.value, ast.Name) else ""
        if counts[target.attr] == 1 and getattr(target.value, "id", "") == own and held in _parameters(maker):
            found[target.attr] = held
    return found


def _is_stored(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _tested(tree: ast.Module) -> set[str]:
    """The attributes of which tests ask whether they are true, or what they are."""
    return {node.attr for test in _tests(tree) for node in nodes_below(test) if isinstance(node, ast.Attribute)}


def _tests(tree: ast.Module) -> list[ast.expr]:
    return [node.test for node in nodes_below(tree) if isinstance(node, (ast.If, ast.IfExp, ast.While))]


def _asked(tree: ast.Module) -> set[str]:
    """The variables of which tests ask something, and those that calls hand on, or that attributes keep, under a name
    of which they do."""
    found = {n.id for test in _tests(tree) for n in nodes_below(test) if isinstance(n, ast.Name)} | _tested(tree)
    given = [node for node in nodes_below(tree) if isinstance(node, (ast.Call, ast.Assign))]
    while more := {name for node in given for name in _handed(node, found)} - found:
        found |= more
    return found


def _handed(node: ast.Call | ast.Assign, asked: set[str]) -> Iterator[str]:
    """The variables that a call hands on, where one of its names is asked about or is not known, or that an attribute
    keeps which is asked about."""
    if isinstance(node, ast.Call):
        named = [keyword.value for keyword in node.keywords if keyword.arg is None or keyword.arg in asked]
        yield from (value.id for value in named if isinstance(value, ast.Name))
        yield from (value.id for value in node.args if isinstance(value, ast.Name) and asked)
    elif isinstance(node.value, ast.Name) and any(getattr(t, "attr", "") in asked for t in node.targets):
        yield node.value.id


@once_for_each_node
def _parameters(function: ast.AST) -> frozenset[str]:
    assert isinstance(function, Function)
    spec = function.args
    return frozenset(parameter.arg for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))


def _stored(function: Function, name: str) -> Iterator[tuple[Demand, ...]]:
    """What is demanded of a parameter for each place to be run that stores something else in its variable."""
    for node in nodes_below(function):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            at = (e for e in _demanded(function) if e.covers(node.lineno, node.col_offset))
            yield _by_name(at).get(name, ())


@once_for_each_node
def _defaults(function: ast.AST) -> dict[str, tuple[object]]:
    """The optional parameters of a function whose defaults are constants."""
    assert isinstance(function, Function)
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    given = [*zip(reversed(positional), reversed(spec.defaults), strict=False)]
    given += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    found = ((parameter.arg, constants(default)) for parameter, default in given)
    return {name: value for name, value in found if value is not None}


def _positional(called: Called) -> list[str]:
    """The parameters that a call fills in their order."""
    spec = called.function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    return names[1:] if isinstance(called.holder, ast.ClassDef) else names
