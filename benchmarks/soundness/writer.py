"""Random programs that run: modules and functions full of control flow, over tensors of several dtypes.

Every tensor is a 4 by 4 matrix, so that whatever is computed fits; chance decides at run time which way a program goes,
by functions of a module that the inference cannot read. A loop or a function begins with ``tick()``, which ends a
program that goes on for too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

CASTS = ("half", "float", "double", "bfloat16")
DTYPES = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")
EXCEPTIONS = ("ValueError", "KeyError", "RuntimeError", "TypeError", "StopIteration")
HANDLED = ("ValueError", "(KeyError, ValueError)", "RuntimeError as error", "Exception", "Exception as error", "")
HANDLED = (*HANDLED, "LookupError", "TypeError", "(AttributeError, TypeError)", "ValueError as error")
LOCALS = ("a", "b", "c")
HEADER = """\
import contextlib
import functools

import torch
from torch import nn

from chance import pick, tick, toss

shared = torch.ones(4, 4)


class Muffled:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return toss()


@contextlib.contextmanager
def muffled():
    try:
        yield
    except (ValueError, KeyError):
        pass


def changed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        tick()
        result = function(*args, **kwargs)
        return result.half() if toss() else result

    return wrapper


def adder(p):
    def add(q):
        return p + q

    p = p.double() if toss() else p
    return add
"""


class Scope:
    """What the code of one function may read: tensors, flags and functions, by name; ``method``: it has ``self``."""

    def __init__(self, method: bool = False, generator: bool = False) -> None:
        self.tensors: list[str] = []
        self.flags: list[str] = []
        self.functions: list[str] = []
        self.lists: list[str] = []
        self.dicts: list[str] = []
        self.outer: list[str] = []
        self.method = method
        self.generator = generator
        self.global_shared = False
        self.loops = 0

    def inner(self) -> Scope:
        """A function inside this one, which sees all that this one does."""
        scope = Scope(self.method)
        scope.tensors, scope.flags, scope.functions = [*self.tensors], [*self.flags], [*self.functions]
        scope.outer = [name for name in self.tensors if name in LOCALS]
        return scope

    def without(self, name: str) -> Scope:
        """The same, but for one tensor."""
        scope = self.inner()
        scope.lists, scope.dicts = self.lists, self.dicts
        scope.tensors = [known for known in scope.tensors if known != name]
        scope.functions = []
        return scope


class Writer:
    """Writes a program by the choices of ``draw``."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.left = draw.randrange(3, 45)
        self.names = 0
        self.current = False
        self.functions: list[str] = []
        self.generators: list[str] = []

    def one(self, choices: Sequence[str]) -> str:
        return self.draw.choice(choices)

    def chance(self, of: int) -> bool:
        return self.draw.randrange(of) == 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def program(self) -> str:
        lines: list[str] = []
        for number in range(self.draw.randrange(4)):
            lines += ["", "", *self.function(number)]
        return HEADER + "\n".join([*lines, "", "", *self.model()]) + "\n"

    # ---- definitions ------------------------------------------------------------------------------------------

    def function(self, number: int) -> list[str]:
        kind = self.draw.randrange(6)
        scope = Scope(generator=kind == 0)
        scope.tensors = ["x", "y"]
        name = f"helper{number}"
        head = self.one(("x, y", "x, y=None", "x, y, *rest", "x, *rest", "x, y=None, **options", "x, y, flag=False"))
        lines = ["tick()"]
        if kind == 1:
            head = "x, count=2"
            scope.tensors = ["x"]
            ends = self.tensor(scope, 1)
            lines += ["if count <= 0:", f"    return {ends}"]
            scope.functions.append("")
        elif "y=None" in head:
            lines += ["y = x if y is None else y"]
        elif head == "x, *rest":
            lines += ["y = rest[0] if rest else x"]
        if "flag" in head:
            scope.flags.append("flag")
        lines += self.start(scope)
        lines += self.block(scope, 0)
        if kind == 1:
            call = f"{name}({self.tensor(scope, 1)}, count - 1)"
            lines += [f"a = {call}"] if self.chance(2) else [f"return {call}"]
        if scope.generator:
            lines += [f"yield {self.tensor(scope, 1)}"]
            self.generators.append(name)
        else:
            lines += [f"return {self.tensor(scope, 2)}"]
            self.functions.append(f"{name}({{}})" if kind == 1 else f"{name}({{}}, {{}})")
        if scope.global_shared:
            lines.insert(0, "global shared")
        decorated = ["@changed"] if not scope.generator and self.chance(6) else []
        return [*decorated, f"def {name}({head}):", *indented(lines)]

    def model(self) -> list[str]:
        """The module that is run."""
        lines = ["class Model(nn.Module):"]
        build = ["super().__init__()", "self.linear = nn.Linear(4, 4)", "self.norm = nn.LayerNorm(4)"]
        build += ['self.register_buffer("table", torch.ones(4, 4))', "self.state = torch.zeros(4, 4)"]
        build += [f"self.option = {self.one(('toss()', 'toss()', 'True', 'False', 'None'))}"]
        build += self.settings()
        lines += ["    def __init__(self):", *indented(indented(build))]
        method = Scope(method=True)
        method.tensors = ["x", "y"]
        if self.chance(2):
            body = ["tick()", *self.start(method), *self.block(method, 0), f"return {self.tensor(method, 2)}"]
            lines += ["", "    def helper(self, x, y):", *indented(indented(body))]
            self.functions.append("self.helper({}, {})")
        if self.chance(2):
            returned = f"return {self.one(('self.state', 'self.state.float()', 'self.table'))}"
            lines += ["", "    @property", "    def current(self):", f"        {returned}"]
            self.current = True
        scope = Scope(method=True)
        scope.tensors = ["x"]
        body = [*self.start(scope), *self.block(scope, 0)]
        while self.left > 0:
            body += self.statement(scope, 0)
        body += [f"return {self.tensor(scope, 2)}"]
        return [*lines, "", "    def forward(self, x):", *indented(indented(body))]

    def settings(self) -> list[str]:
        """Statements of the constructor that go one way or the other."""
        if self.chance(2):
            return []
        first, second = f"torch.ones(4, 4, dtype={self.one(DTYPES)})", f"torch.ones(4, 4, dtype={self.one(DTYPES)})"
        return ["if self.option:", f"    self.state = {first}"] + (
            ["else:", f"    self.state = {second}"] if self.chance(2) else []
        )

    def start(self, scope: Scope) -> list[str]:
        """The first statements of a function: its variables."""
        lines = []
        for name in LOCALS:
            lines.append(f"{name} = {self.tensor(scope, 1)}")
            scope.tensors.append(name)
        lines.append(f"flag = {self.one(('toss()', 'toss()', 'toss()', 'False', 'True', 'x.shape[0] > 3'))}")
        scope.flags.append("flag")
        if self.chance(3):
            lines.append(f"items = [{self.tensor(scope, 1)}]")
            scope.lists.append("items")
        if self.chance(3):
            lines.append(f'table = {{"k": {self.tensor(scope, 1)}, "m": {self.tensor(scope, 0)}}}')
            scope.dicts.append("table")
        if not scope.method and not scope.outer and self.chance(6):
            scope.global_shared = True
        return lines

    # ---- expressions ------------------------------------------------------------------------------------------

    def tensor(self, scope: Scope, depth: int) -> str:
        """An expression that is a tensor."""
        known = self.one(scope.tensors)
        if depth <= 0:
            return known
        kind = self.draw.randrange(33)
        inner = self.tensor(scope, depth - 1)
        if kind == 30:
            return f"adder({inner})({self.tensor(scope, 0)})"
        if kind == 31:
            known = ("items",) if scope.lists else ()
            return f"[*{self.one((*known, f'({inner}, {inner})'))}, {self.tensor(scope, 0)}][{self.one(('0', '-1'))}]"
        if kind == 32:
            return f'{{k: t.{self.one(CASTS)}() for k, t in (("k", {inner}), ("m", {self.tensor(scope, 0)}))}}["m"]'
        if kind < 8:
            return f"{inner}.{self.one(CASTS)}()"
        if kind < 12:
            return f"{inner} {self.one(('+', '*', '-'))} {self.tensor(scope, 0)}"
        if kind == 12:
            return f"torch.relu({inner})"
        if kind == 13:
            return f"{inner}.to({self.tensor(scope, 0)}.dtype)"
        if kind == 14:
            return f"torch.zeros(4, 4, dtype={self.one(DTYPES)})"
        if kind == 15:
            return f"({inner} if {self.test(scope, 1)} else {self.tensor(scope, 0)})"
        if kind == 16:
            return f"({inner}, {self.tensor(scope, 0)})[{self.one(('0', '1', '-1', 'pick(2)'))}]"
        if kind == 17:
            return f"(lambda t: t + {self.tensor(scope, 0)})({inner})"
        if kind == 18:
            listed = f"[t.{self.one(CASTS)}() if toss() else t for t in ({inner}, {self.tensor(scope, 0)})]"
            return f"{listed}[{self.one(('0', '-1', 'pick(2)'))}]"
        if kind == 19:
            return f"sum(t * 2 for t in ({inner}, {self.tensor(scope, 0)}))"
        if kind == 20:
            return "shared"
        if kind == 21 and scope.lists:
            return f"items[{self.one(('0', '-1'))}]"
        if kind == 22 and scope.dicts:
            return self.one(('table["k"]', 'table["m"]', 'table.get("k")'))
        if kind < 25 and scope.method:
            calls = ("self.state", "self.table", f"self.linear({inner})", f"self.norm({inner})", "self.state")
            calls = (*calls, f"self.linear({inner}.to(self.linear.weight.dtype))")
            return self.one((*calls, "self.current") if self.current else calls)
        if kind < 28:
            return self.call(scope, inner)
        return f"({inner} {self.one(('and', 'or'))} {inner})" if kind == 28 and self.chance(9) else f"{inner}.float()"

    def call(self, scope: Scope, inner: str) -> str:
        """A call of a function of the program, in one of the ways to pass arguments."""
        inside = [f for f in scope.functions if f]
        called = [*inside, *(f for f in self.functions if scope.method or not f.startswith("self."))]
        if not called:
            return f"torch.neg({inner})"
        form, other = self.one(called), self.tensor(scope, 0)
        name, single = form.partition("(")[0], form.count("{}") == 1
        way = self.draw.randrange(5)
        if single:
            return form.format(f"*[{inner}]" if way == 0 else inner)
        if way == 0:
            return f"{name}(*[{inner}, {other}])"
        if way == 1:
            return f"{name}({inner}, *({other},))"
        if way == 2 and form.startswith("self."):
            return f"{name}(y={other}, x={inner})"
        if way == 3 and form.startswith("self."):
            return f'{name}(**{{"x": {inner}, "y": {other}}})'
        return form.format(inner, other)

    def test(self, scope: Scope, depth: int) -> str:
        """A condition."""
        kind = self.draw.randrange(16)
        flag = self.one(scope.flags) if scope.flags else "toss()"
        if kind < 4:
            return "toss()"
        if kind < 8:
            return flag
        if kind == 8:
            return f"not {flag}"
        if kind == 9 and depth:
            return f"{self.test(scope, 0)} {self.one(('and', 'or'))} {self.test(scope, 0)}"
        if kind == 10:
            return f"{self.tensor(scope, 0)}.dtype == {self.one(DTYPES)}"
        if kind == 11:
            return f"{self.tensor(scope, 0)}.dtype {self.one(('==', '!='))} {self.tensor(scope, 0)}.dtype"
        if kind == 12:
            return f"{self.tensor(scope, 0)}.dtype in ({self.one(DTYPES)}, {self.one(DTYPES)})"
        if kind == 13 and scope.method:
            return self.one(("self.option", "not self.option", "self.option is None", "self.training"))
        if kind == 14:
            return f"{self.tensor(scope, 0)} is not None"
        return "pick(3) > 1"

    # ---- statements -------------------------------------------------------------------------------------------

    def block(self, scope: Scope, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw.randrange(1, 4)):
            lines += self.statement(scope, depth)
        return lines

    def statement(self, scope: Scope, depth: int) -> list[str]:
        self.left -= 1
        if depth < 4 and self.left > 0 and self.chance(2):
            return self.compound(scope, depth + 1)
        return self.simple(scope, depth)

    def simple(self, scope: Scope, depth: int) -> list[str]:
        kind = self.draw.randrange(46)
        target, value = self.one(LOCALS), self.tensor(scope, 2)
        if kind == 40:
            return [f"{target} = ({self.one(LOCALS)} := {value}) if {self.test(scope, 1)} else {self.tensor(scope, 0)}"]
        if kind == 41:
            how = self.one(("and", "or"))
            return [f"if {self.test(scope, 1)} {how} ({target} := {value}) is not None:", "    pass"]
        if kind == 42:
            return [f"{self.one(LOCALS)} = [({target} := s.{self.one(CASTS)}()) for s in (a, b) if toss() or True][-1]"]
        if kind == 43 and scope.method:
            return ["other = self", f"other.state = {value}"]
        if kind == 44 and scope.generator:
            return [f"yield from ({value}, {self.tensor(scope, 0)})"]
        if kind == 45 and scope.method:
            return [f"for self.state in ({value}, {self.tensor(scope, 0)}):", "    tick()"]
        if depth > 0 and kind < 8:
            return self.leave(scope, value)
        if kind < 10:
            return [f"{target} += {self.tensor(scope, 1)}"]
        if kind == 10:
            return [f"{target}, {self.one(LOCALS)} = {self.tensor(scope, 1)}, {value}"]
        if kind == 11:
            return ["a, *rest = (b, c, a)", f"b = rest[{self.one(('0', '1', '-1'))}]"]
        if kind == 12:
            return [f"flag = {self.test(scope, 1)}"]
        if kind < 15 and scope.method:
            return [f"self.{self.one(('state', 'state', 'option'))} = {value}"]
        if kind == 15 and scope.lists:
            return [f"items.append({value})" if self.chance(2) else f"items[0] = {value}"]
        if kind == 16 and scope.dicts:
            return [f'table["k"] = {value}']
        if kind == 17 and scope.global_shared:
            return [f"shared = {value}"]
        if kind == 18 and scope.generator:
            return [f"yield {value}"]
        if kind == 19:
            return [f"assert {self.test(scope, 0)} or True"]
        if kind == 20:
            return [f"del {target}", f"{target} = {self.tensor(scope.without(target), 1)}"]
        if kind == 21:
            return [f"if ({target} := {value}) is not None and {self.test(scope, 0)}:", "    pass"]
        return [f"{target} = {value}"]

    def leave(self, scope: Scope, value: str) -> list[str]:
        """A statement that leaves its block."""
        kind = self.draw.randrange(6)
        if kind < 3 and scope.loops:
            return [self.one(("break", "continue"))]
        if kind == 3:
            return ["return" if scope.generator else f"return {value}"]
        if kind == 4:
            return [self.one((*(f"raise {kind}" for kind in EXCEPTIONS), "raise"))]
        return [f"{self.one(LOCALS)} = {value}"]

    def compound(self, scope: Scope, depth: int) -> list[str]:
        makers: tuple[Callable[[Scope, int], list[str]], ...]
        makers = (self.branch, self.branch, self.branch, self.for_loop, self.for_loop, self.while_loop, self.tried)
        makers = (*makers, self.tried, self.matched, self.context, self.nested, self.nested)
        return self.draw.choice(makers)(scope, depth)

    def branch(self, scope: Scope, depth: int) -> list[str]:
        test = self.test(scope, 1)
        lines = [f"if {test}:", *indented(self.block(scope, depth))]
        kind = self.draw.randrange(4)
        if kind == 0:
            lines += [f"elif {self.test(scope, 1)}:", *indented(self.block(scope, depth))]
        if kind < 2:
            lines += ["else:", *indented(self.block(scope, depth))]
        if self.chance(3) and test in scope.flags:
            lines += [*self.simple(scope, 0), f"if {test}:", *indented(self.block(scope, depth))]
        return lines

    def looped(self, scope: Scope, depth: int) -> list[str]:
        scope.loops += 1
        body = ["tick()", *self.block(scope, depth)]
        scope.loops -= 1
        if self.chance(2):
            leaving = self.one(("break", "continue", "break"))
            body += [f"if {self.test(scope, 1)}:", *indented([*self.simple(scope, 0), leaving])]
            body += self.simple(scope, 0)
        lines = indented(body)
        return [*lines, "else:", *indented(self.block(scope, depth))] if self.chance(4) else lines

    def for_loop(self, scope: Scope, depth: int) -> list[str]:
        pair = f"{self.tensor(scope, 1)}, {self.tensor(scope, 0)}"
        heads = [
            *("_ in range(pick(4))", "_ in range(2)", "_ in range(pick(3))", f"t in ({pair})"),
            *(f"t in [{pair}, {pair}]", f"_, t in enumerate(({pair}))", f"t, _ in zip(({pair}), range(2))"),
            *(f"t in ({self.tensor(scope, 1)},)", f"{self.one(LOCALS)} in ({pair})", "t in items", "t in ()"),
        ]
        heads += [f"t in {name}({pair})" for name in self.generators]
        head = self.one([head for head in heads if head != "t in items" or scope.lists])
        if self.chance(4):
            head = f"t in [s.{self.one(CASTS)}() for s in ({pair}) if {self.test(scope, 0)}]"
        bound = "t" in head.partition(" in ")[0].split(", ")
        if bound and "t" not in scope.tensors:
            scope.tensors.append("t")
            body = self.looped(scope, depth)
            scope.tensors.remove("t")
        else:
            body = self.looped(scope, depth)
        return [f"for {head}:", *body]

    def while_loop(self, scope: Scope, depth: int) -> list[str]:
        return [f"while {self.one(('toss()', 'True', self.test(scope, 1)))}:", *self.looped(scope, depth)]

    def tried(self, scope: Scope, depth: int) -> list[str]:
        body = self.block(scope, depth)
        if self.chance(2):
            body += [f"if {self.test(scope, 1)}:", f"    raise {self.one(EXCEPTIONS)}", *self.simple(scope, 0)]
        lines = ["try:", *indented(body)]
        handlers = self.draw.randrange(3)
        for number in range(handlers):
            handled = self.one(HANDLED)
            last = number == handlers - 1
            lines += [f"except {handled}:" if handled or not last else "except:", *indented(self.block(scope, depth))]
        lines = [line.replace("except :", "except ValueError:") for line in lines]
        if handlers and self.chance(3):
            lines += ["else:", *indented(self.block(scope, depth))]
        if not handlers or self.chance(3):
            lines += ["finally:", *indented(self.block(scope, depth))]
        return lines

    def matched(self, scope: Scope, depth: int) -> list[str]:
        kind = self.draw.randrange(4)
        subject, patterns = "pick(4)", ["0", "1 | 2", "n if n > 1", "other", "_", "int()", "3 as n"]
        if kind == 0:
            subject, patterns = f"{self.tensor(scope, 0)}.dtype", [*DTYPES, f"{self.one(DTYPES)} | {self.one(DTYPES)}"]
            patterns += ["_"]
        elif kind == 1:
            subject = f"({self.tensor(scope, 0)}, {self.tensor(scope, 1)})"
            patterns = ["(a, b)", "[a, *_]", "(a, b) if toss()", "[b]", "_"]
        elif kind == 2:
            subject, patterns = "flag", ["True", "False", "None", "_"]
        chosen = [self.one(patterns) for _ in range(self.draw.randrange(1, 4))]
        if any(refused in chosen[:-1] for refused in ("_", "other")):
            chosen = [p for p in chosen if p not in ("_", "other")] + ["_"]
        lines = [f"match {subject}:"]
        for pattern in chosen:
            lines += [f"    case {pattern}:", *indented(indented(self.block(scope, depth)))]
        return lines

    def context(self, scope: Scope, depth: int) -> list[str]:
        entered = ("torch.no_grad()", "contextlib.suppress(ValueError, KeyError)", "contextlib.suppress(Exception)")
        entered = (
            *entered,
            "Muffled()",
            "muffled()",
            'torch.autocast("cpu", dtype=torch.bfloat16)',
            'torch.autocast("cpu", enabled=False)',
        )
        return [f"with {self.one(entered)}:", *indented(self.block(scope, depth))]

    def nested(self, scope: Scope, depth: int) -> list[str]:
        """A function inside this one, which reads its variables when it is called."""
        name = self.name("inner")
        inner = scope.inner()
        inner.tensors += ["p", "q"]
        own = [n for n in LOCALS if self.chance(3)]
        body = ["tick()"]
        if own and self.chance(2):
            body += [f"nonlocal {', '.join(own)}"]
        else:
            inner.tensors = [n for n in inner.tensors if n not in own]
            body += [f"{n} = {self.tensor(inner, 1)}" for n in own]
            inner.tensors += own
        allowed = [*own, "p"]
        lines = [line for _ in range(self.draw.randrange(1, 3)) for line in self.assignments(inner, allowed)]
        body += [*lines, f"return {self.tensor(inner, 1)}"]
        if self.chance(4):
            body = ["tick()", f"return {self.tensor(scope.inner(), 1)}"]
        scope.functions.append(f"{name}({{}}, {{}})")
        made = [f"def {name}(p, {self.one(('q', 'q', f'q={self.tensor(scope, 0)}'))}):", *indented(body)]
        after = self.simple(scope, 0) if self.chance(2) else []
        called = [f"{self.one(LOCALS)} = {name}({self.tensor(scope, 1)}, {self.tensor(scope, 0)})"]
        if depth > 1:
            scope.functions.remove(f"{name}({{}}, {{}})")
        return [*made, *after, *called]

    def assignments(self, scope: Scope, names: list[str]) -> list[str]:
        """A statement that assigns only these names."""
        target = self.one(names)
        made = f"{target} = {self.tensor(scope, 1)}"
        kind = self.draw.randrange(4)
        if kind == 0:
            return [f"if {self.test(scope, 1)}:", f"    {made}"]
        if kind == 1:
            return [f"if {self.test(scope, 1)}:", f"    return {self.tensor(scope, 1)}", made]
        return [made]


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def written(draw: Random) -> str:
    """A program by the choices of ``draw``."""
    return Writer(draw).program()
