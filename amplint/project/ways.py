"""Whether every way that the project has into some code ends before it, or runs it in a constructor only."""

from __future__ import annotations

import ast
import re
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from amplint import contents
from amplint.claims.conflict import Conflict
from amplint.claims.conflicts import early_ends
from amplint.infer.lattice.assumptions import NOTHING_SETTLED, Settled
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.state.facts import Kind
from amplint.infer.syntax.behind_constants import left_out
from amplint.infer.syntax.references import references
from amplint.infer.syntax.scripts import is_test
from amplint.project.attributes import Attributes
from amplint.project.autocast_devices import is_switched_off
from amplint.project.callees import Callees
from amplint.project.files import matching, mentioning, parsed, spelling
from amplint.project.handed import makers
from amplint.project.kept import attribute_of, is_spelled_out, running, runs_leading, runs_made_of, runs_of
from amplint.project.leftovers import leftovers_of
from amplint.project.mentions import (
    Definition,
    Function,
    Mention,
    callers,
    definitions,
    first_work,
    inner_rows,
    made_of,
    mentions,
    methods_by_row,
    takes,
)
from amplint.project.passed import Passed
from amplint.project.scopes import is_installed, scope_of
from amplint.project.takers import has_another, takes_from_module
from amplint.project.unusable import Unusable, gives, sets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amplint.claims.suspect import Suspect
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts
    from amplint.project.ends import Failure, Judging
    from amplint.project.scopes import Scope
    from amplint.source import Source

MAX_PARSED, MAX_FILES = 18, 6
"""Files that mention one name, with and without tests; where more do, nothing is asked."""
MAX_ANALYSED_BYTES = 160_000
"""Source of other files that is analysed for one file."""
MAX_DEFINITIONS = 24
"""Definitions that are looked at for one claim."""


def ways_in(facts: FileFacts, judging: Judging) -> Ways:
    """The ways into the code of a file."""
    return Ways(facts, scope_of(facts), judging)


def nowhere(ways: Ways, suspect: Suspect) -> bool:
    """Whether every way to a suspect ends before it, in each of its scenarios."""
    untyped = isinstance(suspect.data, Conflict) and suspect.data.kind is Kind.CONSTANT
    return ways.lead_nowhere(suspect.span.start.row, suspect.scenarios, untyped=untyped)


class Ways:
    """The ways into the code of one file.

    A class is reached where it is made: through the class that makes it, whose ``forward`` may end before it gets
    there, or by what calls the function that makes it. A function is reached where it is called, under autocast where
    that is not switched off around the call. What nothing in the project mentions, or something at the top level of a
    file, is for the project's user to reach.
    """

    def __init__(self, facts: FileFacts, scope: Scope, judging: Judging) -> None:
        self.path = facts.path
        self.file = facts.source
        self._in_module = facts.in_module
        self._scope = scope
        self._judging = judging
        self._ends = {(facts.path, called): early_ends(facts, called=called) for called in (False, True)}
        self._parsed: dict[Path, Source | None] = {facts.path: facts.source}
        self._analysed: dict[Path, int] = {}
        """The bytes of other files that are analysed, 0 for what is left out."""
        self._known: dict[tuple[int, str, bool, bool, frozenset[str]], bool] = {}
        self._inside: dict[tuple[Path, str], bool] = {}
        callees = Callees(facts.source, facts.root[0], self._within_package)
        attributes = Attributes(self.spelling)
        around, refused = facts.classes_around, facts.refused_calls
        self.unusable = Unusable(facts.source, facts.torch_version, callees, attributes, self.spelling, around, refused)
        self._passed = Passed(self)
        self._leftovers = leftovers_of(facts)
        self._targets = {
            row: d
            for d in definitions(facts.source.tree).values()
            for row in range(d.lineno, (d.end_lineno or d.lineno) + 1)
        }

    @property
    def asked(self) -> set[Path]:
        """The other files that were asked so far."""
        return self._parsed.keys() - {self.path}

    def lead_nowhere(self, row: int, scenarios: tuple[str, ...], *, untyped: bool) -> bool:
        """Whether every way to a line ends before it in each of the scenarios; one way at least is seen.

        ``untyped``: what stands there is about a tensor of the default dtype, which in a constructor is the weights'.
        """
        target = self._targets.get(row)
        if target is None:
            return False
        named = [scenario for scenario in self._judging.scenarios if scenario.name in scenarios]
        if all(untyped or not scenario.keeps_explicit for scenario in named) and self._builds(target, row):
            return True
        if all(self._ends_before_calls(target, row, scenario) for scenario in named):
            return True
        made = row in inner_rows(target)
        methods = frozenset(methods_by_row(target).get(row, ())) if isinstance(target, ast.ClassDef) else frozenset()
        return all(self._leads_nowhere(target, row, scenario, made, untyped, methods) for scenario in named)

    def _ends_before_calls(self, target: Definition, row: int, scenario: Scenario) -> bool:
        """Whether a line stands in a method that only its own class calls, where each calling method ends before."""
        names = methods_by_row(target).get(row, []) if isinstance(target, ast.ClassDef) else []
        name = names[0] if names else "forward"
        if name in ("__init__", "forward", "__call__") or not callers(self.file.tree).get(name):
            return False
        assert isinstance(target, ast.ClassDef)
        method = next(s for s in target.body if isinstance(s, Function) and s.name == name)
        calls = self._passed.calls_of_method(self.file, target, method)
        return bool(calls) and all(
            self.ends(self.file, called.function, called=False).get(scenario.name, inf) < call.lineno
            for called, call in calls or ()
        )

    def _builds(self, target: Definition, row: int) -> bool:
        """Whether a line stands in a method of a module that constructors call, and methods that only they do: nothing
        else. It runs before anything is cast."""
        methods = methods_by_row(target).get(row) if isinstance(target, ast.ClassDef) else None
        if not methods or not self._in_module(row):
            return False
        pending, seen = [*methods], {*methods}
        while pending:
            found = self._callers(pending.pop())
            if not found or "" in found:
                return False
            pending += found - seen - {"__init__"}
            seen |= found
        return "__init__" in seen

    def _callers(self, name: str) -> set[str] | None:
        """The methods that call one of their own object: in all files, if this one mentions it only so.

        None where they are too many.
        """
        own = callers(self.file.tree).get(name, set())
        if not own or "" in own:
            return own
        sources = self._read(spelling(*self._scope, contents.age(), b"." + name.encode()))
        return None if sources is None else own.union(*(callers(source.tree).get(name, ()) for source in sources))

    def spelling(self, word: str) -> list[Source] | None:
        """The files that have a word; None where they are too many."""
        found = self._read(spelling(*self._scope, contents.age(), word.encode()))
        return [self.file, *(source for source in found if source.path != self.path)] if found is not None else None

    def is_given(self, name: str) -> bool:
        """Whether a file sets an attribute of that name, as of a module or of an object that is not its own, or has it
        as a string; so where files that have the word are too many."""
        files = self.spelling(name)
        return files is None or any(gives(file.tree, name) for file in files)

    def is_set(self, name: str) -> bool:
        """Whether a file sets an attribute of that name of an object that is not its own; so where files are too many
        to be searched."""
        word = re.escape(name.encode())
        pattern = re.compile(rb"\.%b\b[^\n=]*=|\bsetattr\b[^\n]*\b%b\b" % (word, word))
        paths = matching(*self._scope, contents.age(), pattern)
        files = (self._parse(path) for path in {self.path, *paths}) if paths is not None else ()
        return paths is None or any(sets(file.tree, name) for file in files if file is not None)

    def leave_out(self, row: int) -> bool:
        """Whether constants of the file leave a line out, and no file sets them."""
        found = [names for first, last, names in left_out(self.file.tree) if first <= row <= last]
        return any(not any(map(self.is_given, names)) for names in found)

    def lack(self, file: Source, row: int, column: int | None = None) -> bool:
        """Whether no call in the project passes what a place in one of its files needs to be run."""
        return self._scope.whole and self._passed.lack(file, row, column)

    def settled(self) -> Settled:
        """The parameters of the file that all calls in the project leave at their defaults."""
        return self._passed.settled(self.file) if self._scope.whole else NOTHING_SETTLED

    def is_left(self, file: Source, mention: Mention) -> bool:
        """Whether what mentions a name is left over: nothing in the project uses it."""
        return mention.definition is not None and self._leftovers.hold_of(file, mention.definition)

    def is_mentioned(self, file: Source, mention: Mention) -> bool:
        """Whether the project mentions the class that mentions a name, offers it to others, or may find it by a text;
        a function is for its user to call."""
        holder = mention.definition
        if not isinstance(holder, ast.ClassDef):
            return True
        users = self.users(file, holder.name)
        if users is None or any(other.definition is not holder for _, other in users):
            return True
        return self.is_exported(file, holder.name) or self._leftovers.is_in_texts(holder.name)

    def is_module(self, file: Source, cls: ast.ClassDef) -> bool:
        """Whether a class of the file that is judged is a module, and of torch's own classes alone."""
        return file is self.file and self._in_module(cls.lineno) and self._leftovers.is_of_torch(cls)

    def _read(self, paths: tuple[Path, ...] | None) -> list[Source] | None:
        """The files of these that are no tests; None where they are too many."""
        if paths is None or len(paths) > MAX_PARSED:
            return None
        return [s for s in map(self._parse, paths) if s is not None and not is_test(s.tree)]

    def _leads_nowhere(
        self, target: Definition, row: int, scenario: Scenario, made: bool, untyped: bool, methods: frozenset[str]
    ) -> bool:
        constructs = untyped or not scenario.keeps_explicit
        key = (row, scenario.name, made, constructs, methods)
        if key not in self._known:
            walks = (_Walk(self, row, scenario, constructs, asks=asks) for asks in (False, True))
            ends = (walk.ends(self.file, target, methods, made=made) and walk.ended for walk in walks)
            self._known[key] = all(ends)
        return self._known[key]

    def users(self, file: Source, name: str) -> list[tuple[Source, Mention]] | None:
        """The mentions of what a file defines, its own first; None where they are too many.

        Tests do not count: what they make is made for the test.
        """
        paths = mentioning(*self._scope, contents.age(), name.encode())
        if paths is None or len(paths) > MAX_PARSED:
            return None
        parsed = (self._parse(path) for path in paths if path != file.path)
        others = [other for other in parsed if other is not None and not is_test(other.tree)]
        users = [file, *(other for other in others if not self._means_another(other, file, name))]
        if len(users) > MAX_FILES + 1:
            return None
        return [(user, mention) for user in users for mention in mentions(user.tree).get(name, ())]

    def _means_another(self, user: Source, file: Source, name: str) -> bool:
        """Whether what a file mentions by a name is its own, or that of a third file."""
        if name in definitions(user.tree) or has_another(user.tree, user.path, file.path, name):
            return True
        return file.path.stem == name and takes_from_module(user.tree, name, file.tree)

    def is_exported(self, file: Source, name: str) -> bool:
        """Whether the ``__init__`` of a package takes a name of a file, or all of them, for others to use."""
        if not is_installed(file.path):
            return False
        words = (name, file.path.stem)
        paths = {path for word in words for path in mentioning(*self._scope, contents.age(), word.encode()) or ()}
        packages = (self._parse(path) for path in paths if path.name == "__init__.py")
        return any(takes(package.tree, file.path.stem, name) for package in packages if package is not None)

    def ends(self, file: Source, function: Function, *, called: bool) -> Mapping[str, int]:
        """The scenarios in which a function ends early; ``called``: as its own file calls it."""
        key = file.path, called
        if key not in self._ends:
            ends = self._judging.ends_called if called else self._judging.ends
            self._ends[key] = ends(file.path) if self._is_asked(file) else {}
        return self._ends[key].get(function.lineno, {})

    def is_kept_inside(self, file: Source, cls: ast.ClassDef) -> bool:
        """Whether functions and classes of its own file are all that make objects of a class."""
        key = file.path, cls.name
        if key not in self._inside:
            users = self.users(file, cls.name)
            made = [mention for _, mention in users or () if mention.definition is not cls]
            inside = bool(made) and all(user is file and mention.definition for user, mention in users or ())
            self._inside[key] = inside and not self.is_exported(file, cls.name)
        return self._inside[key]

    def brings_about(self, file: Source) -> frozenset[Failure]:
        """The operations in other files whose operands disagree for what a file passes."""
        return self._judging.brings_about(file.path) if self._is_asked(file) else frozenset()

    def meets_behind(self, file: Source, row: int, scenario: str) -> bool:
        """Whether what a file calls gets to a line of the file only where something raises before."""
        met = self._judging.meets_behind(file.path) if self._is_asked(file) else frozenset()
        return (self.path, row, scenario) in met

    def _is_asked(self, file: Source) -> bool:
        """Whether a file is analysed for this one: as much source as there is time for."""
        if file.path not in self._analysed:
            size = sum(self._analysed.values()) + len(file.data)
            self._analysed[file.path] = len(file.data) if size <= MAX_ANALYSED_BYTES else 0
        return self._analysed[file.path] > 0

    def target(self, row: int) -> Definition | None:
        """The function or class at the top of the file that a line stands in."""
        return self._targets.get(row)

    def is_switched_off(self, file: Source, row: int) -> bool:
        """Whether autocast is switched off around a line."""
        return is_switched_off(file.tree, row, self._judging.device)

    def is_shut(self, row: int) -> bool:
        """Whether nobody uses a line of the file, since what runs it raises."""
        return self.unusable.holds(self.file, row)

    def _within_package(self, path: Path) -> Source | None:
        """A file of the package, unless too many were asked."""
        known = path in self._parsed or len(self._parsed) < MAX_PARSED
        return self._parse(path) if known else None

    def _parse(self, path: Path) -> Source | None:
        if path not in self._parsed:
            self._parsed[path] = parsed(path)
        return self._parsed[path]


class _Walk:
    """Follows the ways into a definition, and to a line of it, backwards, in one scenario; ``ended``: one was seen to
    end.

    ``constructs``: a constructor that runs something ends the way, since nothing is cast yet. ``asks``: files are
    analysed to know what ends; else all does that may.
    """

    def __init__(self, ways: Ways, row: int, scenario: Scenario, constructs: bool, *, asks: bool) -> None:
        self.ended = False
        self._row = row
        self._asks = asks
        self._constructs = constructs
        self._ways = ways
        self._scenario = scenario
        self._visited: set[tuple[Path, str, bool, frozenset[str]]] = set()

    def ends(self, file: Source, target: Definition, methods: frozenset[str], *, made: bool) -> bool:
        """Whether every way into a definition ends before it: of a class, into some of its methods, if any is named.

        ``made``: what it makes is reached later than it is called, as an object of a class is.
        """
        key = (file.path, target.name, made, methods)
        if key in self._visited:
            return True
        self._visited.add(key)
        if _is_decorated(file, target) or len(self._visited) > MAX_DEFINITIONS:
            return False
        users = self._ways.users(file, target.name)
        others = {(user.path, mention): user for user, mention in users or () if mention.definition is not target}
        used = {
            (path, mention): user
            for (path, mention), user in others.items()
            if not self._ways.unusable.holds(user, mention.row)
            and not self._ways.lack(user, mention.row, mention.column)
        }
        used = {at: user for at, user in used.items() if not self._ways.is_left(user, at[1])} or used
        used = {at: user for at, user in used.items() if self._ways.is_mentioned(user, at[1])} or used
        self.ended = self.ended or len(used) < len(others)
        if others and self._is_handed(file, target, methods, [mention for _, mention in used]):
            self.ended = True
            return True
        if not others or any(mention.definition is None for _, mention in used):
            return False
        made = made or isinstance(target, ast.ClassDef)
        offered = self._ways.is_exported(file, target.name)
        return all(self._ends_at(user, mention, target, methods, made, offered) for (_, mention), user in used.items())

    def _is_handed(self, file: Source, target: Definition, methods: frozenset[str], used: list[Mention]) -> bool:
        """Whether a class is only handed on, and each class of its file that makes objects of such ends before it uses
        them: where the file reports that one."""
        if not isinstance(target, ast.ClassDef) or any(mention.called for mention in used):
            return False
        takers = [(cls, name) for cls, name in makers(file.tree) if cls is not target]
        ending = (self._object_ends(file, cls, name, target, methods) for cls, name in takers)
        return bool(takers) and all(ending) and not self._ways.is_exported(file, target.name)

    def _ends_at(
        self, file: Source, mention: Mention, target: Definition, methods: frozenset[str], made: bool, offered: bool
    ) -> bool:
        """Whether the way through one mention of a definition, which a package may offer to others, ends before it
        brings anyone to that."""
        holder, method = mention.definition, mention.method
        assert holder is not None
        if self._scenario.autocast and mention.called and not made and self._ways.is_switched_off(file, mention.row):
            self.ended = True
            return True
        if self._is_met_behind(file):
            self.ended = True
            return True
        attribute = attribute_of(file, mention) if made else None
        if attribute is not None and not offered and self._is_never_run(file, mention, attribute, target, methods):
            self.ended = True
            return True
        if method is not None and _is_decorated(file, method):
            return False
        if self._constructs and mention.called and not made and method is not None and method.name == "__init__":
            self.ended = True
            return True
        if isinstance(holder, ast.ClassDef) and self._object_ends(file, holder, target.name, target, methods):
            self.ended = True
            return True
        around = frozenset[str]()
        if isinstance(holder, ast.ClassDef) and attribute is not None:
            around = running(file, holder, attribute)
        return self.ends(file, holder, around, made=made or not mention.called)

    def _is_met_behind(self, file: Source) -> bool:
        """Whether what another file calls gets to the line only where something raises before; while no file is asked,
        whether it may be so."""
        if self._scenario.autocast or file.path == self._ways.path:
            return False
        return not self._asks or self._ways.meets_behind(file, self._row, self._scenario.name)

    def _is_never_run(
        self, file: Source, mention: Mention, attribute: str, target: Definition, methods: frozenset[str]
    ) -> bool:
        """Whether the project runs some methods of what an attribute holds only with autocast switched off, or nowhere
        at all."""
        runs = runs_of(attribute, self._ways.spelling(attribute))
        leading = runs_leading(runs, target, methods) if runs is not None else None
        if not leading:
            return leading is not None and is_spelled_out(file, mention)
        off = self._ways.is_switched_off
        return self._scenario.autocast is not None and all(off(run.file, run.row) for run in leading)

    def _object_ends(
        self, file: Source, cls: ast.ClassDef, name: str, target: Definition, methods: frozenset[str]
    ) -> bool:
        """Whether calling an object of a class, or of those of its file that derive from it, ends before it uses what
        is made with a name, and no other method is there to be called that leads to some methods of that, the
        target."""
        family = [
            other
            for other in definitions(file.tree).values()
            if isinstance(other, ast.ClassDef)
            and (other is cls or any(isinstance(base, ast.Name) and base.id == cls.name for base in other.bases))
        ]
        forwards = [forward for one in family for forward in _forwards(one)]
        limit = partial(self._end_of, file, cls)
        if not any(True for _ in _forwards(cls)) or runs_made_of(file, cls, name, target, methods, limit):
            return False
        return all(self._ends_before(file, forward, cls, name) for forward in forwards)

    def _ends_before(self, file: Source, forward: Function, cls: ast.ClassDef, name: str) -> bool:
        """Whether a ``forward`` ends before it uses what a class makes with a name."""
        if self._end_of(file, cls, forward) == inf:
            return False
        return forward not in cls.body or name not in made_of(cls, forward, partial(self._end_of, file, cls))

    def _end_of(self, file: Source, cls: ast.ClassDef, function: Function) -> float:
        """The line on which a method of a class ends early, infinite where it does not; that of its head where nobody
        uses what it runs; while no file is asked, one before which it does not end.

        Under autocast little raises, so that other files are asked about half weights only.
        """
        if self._ways.unusable.holds_all(file, function):
            return function.lineno
        if self._scenario.autocast and file.path != self._ways.path:
            return inf
        if not self._asks:
            return first_work(function)
        called = self._ways.is_kept_inside(file, cls)
        return self._ways.ends(file, function, called=called).get(self._scenario.name, inf)


def _forwards(cls: ast.ClassDef) -> Iterator[Function]:
    yield from (s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == "forward")


_OF_GRADIENTS = frozenset(("torch.no_grad", "torch.inference_mode", "torch.enable_grad"))
"""Decorators that only switch gradients."""


def _is_decorated(file: Source, definition: Definition) -> bool:
    """Whether a decorator may lead to a definition by another way, or around it."""
    if not definition.decorator_list:
        return False
    names = {id(reference.node): reference.name for reference in references(file.tree)}
    named = (one.func if isinstance(one, ast.Call) else one for one in definition.decorator_list)
    return any(canonical(names.get(id(one), "")) not in _OF_GRADIENTS for one in named)
