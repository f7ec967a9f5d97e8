"""Python's control flow, once for all that follow the statements of a function.

Where each statement leads: into branches, round loops until that brings nothing new, to handlers from wherever
something may raise, through ``finally`` on every way out. What holds at a point is up to who follows: to the inference
the dtypes of variables in each scenario, to the training rules what has happened to the gradients.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from amplint.infer.syntax.patterns import comparisons, takes_any
from amplint.infer.syntax.raising import for_old_releases, may_raise, takes_all, takes_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
TRIES = tuple(kind for kind in ast.stmt.__subclasses__() if kind.__name__ in ("Try", "TryStar"))
"""``try``, and ``try`` with ``except*`` where Python has it."""
Point = TypeVar("Point")
"""What holds at a point of a function; false where it is not reached."""
MAX_PASSES = 3
"""Passes over a loop's body after which what it still changes is widened."""
MAX_WIDENED = 2
"""Further passes, with that widened."""


class Followed(ABC, Generic[Point]):
    """A function, or a module's top level, whose statements are followed: where that is, and where it was left."""

    live: Any
    """What reaches the current statement: false where nothing does."""
    statement: ast.stmt | None = None
    block = 0
    """``id`` of the statements of the branch or loop body that runs, 0 outside of all."""
    path: tuple[int, ...] = ()
    """The branches that run and might not, each by ``id`` of its statements, outermost first."""
    branches = 0
    """How many blocks around the current statement may not run, or not once."""
    catches: tuple[Catch[Point], ...] = ()
    """What is run where something raises here."""
    leaves: list[Point] | None = None
    """Where the function is left by ``return``; None where nobody asks."""

    def __init__(self) -> None:
        self.breaks: list[Point] = []
        """Where the loop that runs is left by ``break``."""
        self.continues: list[Point] = []
        """Where the next pass of the loop that runs is begun by ``continue``."""
        self.returns: list[Any] = []
        """What is returned."""

    def managed(self) -> Any:
        """What context managers set, and set back at their end."""
        return None

    def set_back(self, managed: Any) -> None:
        """Have what context managers set be as it was."""

    @property
    def ways_out(self) -> int:
        """Counts where the loop or the function was left so far, but by an exception."""
        return len(self.breaks) + len(self.continues) + len(self.returns)

    def end(self) -> Point:
        """Where the function is now, and goes on from elsewhere."""
        point: Point = self.live
        return point

    def go_on(self, point: Point) -> None:
        """Run on from a point."""
        self.live = point

    def go_back(self, point: Point) -> None:
        """Run on from a point that is kept."""
        self.go_on(point)

    @abstractmethod
    def met(self, *points: Point) -> Point:
        """What holds where paths meet; what is not reached where there are none."""

    def stop(self) -> None:
        """Nothing runs behind this."""
        self.live = type(self.live)()

    def point(self) -> Point:
        """Where the function is now, kept from what happens next."""
        return self.end()

    def gives(self, returned: Any) -> Any | None:
        """What was returned, as far as it still is when ``finally`` has run."""
        return returned

    def may_raise(self, *, thrown: bool = False) -> None:
        """Note that what runs next may raise; ``thrown``: by a statement that does nothing else."""
        for catch in self.catches:
            catch.note(self, thrown=thrown)


class Catch(Generic[Point]):
    """Every point at which something may raise inside a block, met in one; ``thrown``: where a statement raises."""

    def __init__(self, followed: Followed[Point]) -> None:
        self.reached = self.thrown = followed.met()

    def note(self, followed: Followed[Point], *, thrown: bool = False) -> None:
        """Something may raise where the function is now."""
        if followed.live:
            here = followed.point()
            self.reached = followed.met(self.reached, here)
            if thrown:
                self.thrown = followed.met(self.thrown, here)


class Rounds(NamedTuple):
    """What a loop runs over: ``items`` one after another, or else ``item`` any number of times."""

    items: tuple[Any, ...] | None = None
    item: Any = None
    some: bool = False
    """Whether it runs at least once."""
    first: Any = None
    """What the first pass gets, where more is known of that than of the others."""


F = TypeVar("F", bound=Followed[Any])


class Control(Generic[F]):
    """Follows statements; what they do beside leading elsewhere is for those below this class."""

    def __init__(self) -> None:
        self.ways: dict[type[ast.stmt], Callable[[F, Any], None]] = {
            **dict.fromkeys(ast.stmt.__subclasses__(), self.plain),
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.If: self._if,
            **dict.fromkeys(LOOPS, self._loop),
            **dict.fromkeys((ast.With, ast.AsyncWith), self._with),
            ast.Match: self._match,
            **dict.fromkeys(TRIES, self._try),
        }

    # ---- what is up to who follows ------------------------------------------------------------------------------

    def plain(self, f: F, statement: ast.stmt) -> None:
        """What a statement without blocks does before it leads anywhere."""

    def test(self, f: F, test: ast.expr) -> Any:
        """Go on where a test comes out true; gives where it does not."""
        here = f.point()
        if not isinstance(test, ast.Constant):
            return here
        f.go_on(here if test.value else f.met())
        return f.met() if test.value else here

    def until(self, f: F, test: ast.expr) -> Any:
        """``test`` of a ``while``."""
        return self.test(f, test)

    def bind(self, f: F, target: ast.expr, item: Any) -> None:
        """The target of a ``for`` gets an item."""

    def met_again(self, f: F, head: Any, end: Any) -> Any:
        """Where a pass begins: before the loop, or at the end of another pass."""
        return f.met(head, end)

    def differs(self, before: Any, after: Any, number: int) -> bool:
        """Whether a pass over a loop brought anything new; ``number``: how many there were before it."""
        return bool(before != after)

    def widened(self, f: F, first: Any, before: Any, after: Any, number: int) -> Any:
        """Where a loop goes on that still brings something new; ``first``: where it began."""
        return after

    def enter(self, f: F, item: ast.withitem) -> bool:
        """Enter a context manager; whether it swallows exceptions."""
        return False

    def rounds(self, f: F, statement: ast.For | ast.AsyncFor) -> Rounds:
        """What a ``for`` runs over."""
        return Rounds()

    def subject(self, f: F, statement: ast.Match) -> Any:
        """What the cases of a ``match`` get."""

    def capture(self, f: F, pattern: ast.pattern, subject: Any) -> None:
        """A pattern matched."""

    def caught(self, f: F, handler: ast.ExceptHandler) -> None:
        """A handler took an exception."""

    def again(self, f: F, statement: ast.For | ast.AsyncFor, rounds: Rounds) -> Rounds:
        """What a ``for`` runs over after a pass."""
        return rounds

    def skipped(self, f: F, before: Any, after: Any) -> Any:
        """Where a ``for`` ends that may have had nothing to run over: before its passes, or after one."""
        return f.met(before, after)

    def back(self, f: F, statement: Loop) -> None:
        """A pass has come to the head of its loop again, which may raise there."""
        if f.catches:
            self.may_raise(f, statement)

    def choose(self, f: F, statement: ast.If) -> tuple[Any, list[ast.stmt] | None]:
        """``test`` of an ``if``, and the branch that is run for what is in it alone."""
        return self.test(f, statement.test), None

    def aside(self, f: F, body: list[ast.stmt]) -> Any:
        """Run a branch with which the program does not go on; what it leaves all the same."""

    def parted(self, f: F, paths: Sequence[tuple[int, ...]]) -> None:
        """Branches were run, one of which is always taken: the paths of those that do not only raise."""

    def chosen(self, f: F, statement: ast.If, left: Any, yes: Any, no: Any) -> None:
        """The branches of an ``if`` that end at these points have met; ``left``: by one that ran aside."""

    def changes(self, f: F) -> int:
        """Counts the changes of what is no part of a point."""
        return 0

    def may_raise(self, f: F, node: ast.stmt | ast.expr) -> None:
        """Where something waits for an exception, note that a statement or expression may raise one."""
        if may_raise(node):
            f.may_raise()

    def tried(self, f: F, statement: ast.Try) -> None:
        """Run what handlers stand behind."""
        self.run(f, statement.body)

    # ---- Python's statements ------------------------------------------------------------------------------------

    def run(self, f: F, body: Sequence[ast.stmt]) -> None:
        """Run statements until they end or nothing is live."""
        for statement in body:
            if not f.live:
                return
            if f.catches:
                self.may_raise(f, statement)
            f.statement = statement
            self.ways[type(statement)](f, statement)

    def _return(self, f: F, statement: ast.stmt) -> None:
        self.plain(f, statement)
        if f.leaves is not None and f.live:
            f.leaves.append(f.point())
        f.stop()

    def _raise(self, f: F, statement: ast.stmt) -> None:
        self.plain(f, statement)
        f.may_raise(thrown=True)
        f.stop()

    def _break(self, f: F, statement: ast.stmt) -> None:
        f.breaks.append(f.point())
        f.stop()

    def _continue(self, f: F, statement: ast.stmt) -> None:
        f.continues.append(f.point())
        f.stop()

    def _if(self, f: F, statement: ast.If) -> None:
        """Run both branches of an ``if``, each from where its test comes out so."""
        no, unusual = self.choose(f, statement)
        live, block, path = f.live, f.block, f.path
        ends, paths, left = [], [], None
        f.branches += 1
        for body, other in ((statement.body, no), (statement.orelse, live)):
            f.block, f.path = id(body), (*path, id(body)) if other else path
            own, ways = f.path, f.ways_out
            if body is unusual:
                left = self.aside(f, body)
            else:
                self.run(f, body)
            if f.live or body is unusual or f.ways_out != ways:
                paths.append(own)
            ends.append(f.end())
            f.go_on(no)
        f.branches -= 1
        f.block, f.path = block, path
        self.parted(f, paths)
        f.go_on(f.met(*ends))
        self.chosen(f, statement, left, *ends)

    def _loop(self, f: F, statement: Loop) -> None:
        """Run a loop, its ``else`` where it ends by itself, and go on where either or a ``break`` leads."""
        rounds = Rounds() if isinstance(statement, ast.While) else self.rounds(f, statement)
        block, breaks, continues = f.block, f.breaks, f.continues
        f.block, f.breaks = id(statement.body), []
        f.branches += 1
        if rounds.items is None:
            self._until_settled(f, statement, rounds)
        else:
            for item in rounds.items:
                if f.live:
                    self._go_round(f, statement, item)
        left, f.breaks, f.continues = f.breaks, breaks, continues
        f.block = block
        f.branches -= not left
        self.run(f, statement.orelse)
        if left:
            f.branches -= 1
            f.go_on(f.met(f.end(), *left))

    def _go_round(self, f: F, statement: Loop, item: Any) -> Any:
        """One pass, to where the next would begin; gives where the loop ends before it."""
        ended = None
        if isinstance(statement, ast.While):
            ended = self.until(f, statement.test)
        else:
            self.bind(f, statement.target, item)
        f.continues = []
        self.run(f, statement.body)
        f.go_on(f.met(f.end(), *f.continues))
        self.back(f, statement)
        return ended

    def _until_settled(self, f: F, statement: Loop, rounds: Rounds) -> None:
        """Run the body from what leads to it, before the loop and from its own end, until that is all there is."""
        before, early = f.end(), f.breaks
        if rounds.first is not None:
            self._go_round(f, statement, rounds.first)
            early = f.breaks
        first = head = end = f.end()
        for number in range(MAX_PASSES + MAX_WIDENED if f.live or rounds.first is None else 0):
            f.go_back(head)
            if number and not isinstance(statement, ast.While):
                rounds = self.again(f, statement, rounds)
            changes = self.changes(f)
            f.breaks = []
            ended = self._go_round(f, statement, rounds.item)
            end = f.end()
            onward = self.met_again(f, head, end)
            if changes == self.changes(f) and not self.differs(head, onward, number):
                break
            head = self.widened(f, first, head, onward, number) if number >= MAX_PASSES - 1 else onward
        f.breaks = [*early, *f.breaks]
        if isinstance(statement, ast.While):
            end = ended
        elif rounds.first is not None:
            end = f.met(head, end) if rounds.some else self.skipped(f, before, f.met(head, end))
        elif not rounds.some:
            end = self.skipped(f, head, end)
        f.go_on(end)

    def _with(self, f: F, statement: ast.With | ast.AsyncWith) -> None:
        """Behind a ``with`` that may swallow exceptions the program goes on wherever one was raised."""
        managed, around = f.managed(), f.catches
        swallows = False
        for item in statement.items:
            swallows |= self.enter(f, item)
        if swallows:
            swallowed = Catch(f)
            f.catches = (*around, swallowed)
            f.branches += 1
            self.run(f, statement.body)
            f.branches -= 1
            f.catches = around
            f.go_on(f.met(f.end(), swallowed.reached))
        else:
            self.run(f, statement.body)
        f.set_back(managed)

    def _match(self, f: F, statement: ast.Match) -> None:
        """The cases in order, each from where those before it do not match."""
        subject = self.subject(f, statement)
        block, path, rest = f.block, f.path, f.end()
        ends, paths = [], []
        f.branches += 1
        for case, test in zip(statement.cases, comparisons(statement), strict=True):
            f.go_back(rest)
            if not f.live:
                break
            f.block, f.path = id(case.body), (*path, id(case.body))
            if test is not None:
                rest = self.test(f, test)
            elif takes_any(case.pattern):
                rest = f.met()
            self.capture(f, case.pattern, subject)
            if case.guard is not None:
                if f.catches:
                    self.may_raise(f, case.guard)
                rest = f.met(rest, self.test(f, case.guard))
            own, ways = f.path, f.ways_out
            self.run(f, case.body)
            if f.live or f.ways_out != ways:
                paths.append(own)
            ends.append(f.end())
        f.branches -= 1
        f.block, f.path = block, path
        if not rest:
            self.parted(f, paths)
        f.go_on(f.met(*ends, rest))

    def _try(self, f: F, statement: ast.Try) -> None:
        """A last block runs on every way out: the usual one, by an exception or ``return``, out of a loop."""
        if not statement.finalbody:
            self._handled(f, statement)
            return
        escaped, around = Catch(f), f.catches
        breaks, continues, leaves, count = f.breaks, f.continues, f.leaves, len(f.returns)
        f.catches, f.breaks, f.continues, f.leaves = (escaped,), [], [], []
        self._handled(f, statement)
        ways = ((f.breaks, breaks), (f.continues, continues))
        left, pending = f.met(*f.leaves), f.returns[count:]
        f.catches, f.breaks, f.continues, f.leaves = around, breaks, continues, leaves
        del f.returns[count:]
        self.run(f, statement.finalbody)
        usual = f.end()
        path, f.path = f.path, (*f.path, id(statement.finalbody))
        f.branches += 1
        for way, onward in ways:
            f.go_on(f.met(*way))
            self.run(f, statement.finalbody)
            if f.live:
                onward.append(f.end())
        f.go_on(f.met(left, escaped.reached))
        self.run(f, statement.finalbody)
        f.returns += [given for returned in pending if (given := f.gives(returned)) is not None]
        if f.live and left and leaves is not None:
            leaves.append(f.point())
        if escaped.reached:
            f.may_raise(thrown=bool(escaped.thrown))
        f.branches -= 1
        f.path = path
        f.go_on(usual)

    def _handled(self, f: F, statement: ast.Try) -> None:
        """The body, then ``else``; each handler from wherever the body may raise."""
        own, around, block, path = Catch(f), f.catches, f.block, f.path
        f.block = id(statement.body)
        if any(map(takes_failures, statement.handlers)):
            f.path = (*path, id(statement.body))
        f.branches += 1
        if statement.handlers:
            f.catches = (own,) if any(map(takes_all, statement.handlers)) else (*around, own)
        self.tried(f, statement)
        f.catches = around
        self.run(f, statement.orelse)
        f.block = 0
        for handler in statement.handlers:
            reached, done = own.thrown if for_old_releases(handler) else own.reached, f.end()
            if reached:
                f.go_back(reached)
                f.path = (*path, id(handler))
                self.caught(f, handler)
                self.run(f, handler.body)
                f.go_on(f.met(done, f.end()))
        f.branches -= 1
        f.block, f.path = block, path


class _Reach(Followed[bool]):
    """Statements of which it is asked whether anything runs behind them."""

    live: Any = True

    def met(self, *points: bool) -> bool:
        return any(points)


_REACHING: Control[_Reach] = Control()


def goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows some statements in their block may run: not behind a ``return`` on every path."""
    reach = _Reach()
    _REACHING.run(reach, body)
    return bool(reach.live)
