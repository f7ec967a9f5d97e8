"""Random programs as nobody would write them, and what an analysis of one says, as text that can be compared.

``python tests/program_random.py FIRST LAST`` prints a digest of what is said of the programs of those seeds, and ends
with status 1 where an analysis raises or goes beyond its budget.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

from amplint.annotate.rows import file_dtypes
from amplint.claims.conflicts import conflicts
from amplint.infer.entry import analysis
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.state.session import MAX_STEPS, Session
from amplint.infer.torch_model.torch_ops import names
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.infer.state.facts import FileFacts

SCENARIOS = (CONTROL, *DEFAULT_SCENARIOS)
OPERATIONS = names()
LAYERS = ("Linear", "Conv2d", "LayerNorm", "Embedding", "Sequential", "ModuleList", "ModuleDict", "GRU", "Parameter")
LAYERS = (*LAYERS, "TransformerEncoderLayer", "TransformerEncoder", "MultiheadAttention", "Buffer", "Dropout", "Nope")
CLASSES = tuple(f"C{i}" for i in range(5))
FUNCTIONS = tuple(f"f{i}" for i in range(5))
VARIABLES = ("x", "y", "z", "a", "b", "d", "self", "ctx", "args", "kwargs", "i", "T")
ATTRIBUTES = ("a", "b", "p", "weight", "dtype", "device", "shape", "T", "data", "forward", "training", "__class__")
ATTRIBUTES = (*ATTRIBUTES, "__name__", "apply", "saved_tensors", "save_for_backward", "func", "args", "type", "max")
METHODS = ("half", "float", "to", "type_as", "add_", "append", "extend", "insert", "pop", "get", "items", "values")
METHODS = (*METHODS, "update", "setdefault", "replace", "lower", "startswith", "register_buffer", "register_parameter")
METHODS = (*METHODS, "removeprefix", "endswith", "strip", "items", "named_parameters", "apply", "to_empty", "sum")
METHODS = (*METHODS, "add_module", "parameters", "children", "copy", "keys", "new_zeros", "index_put_", "__getitem__")
BUILTINS = ("len", "list", "tuple", "dict", "zip", "enumerate", "map", "getattr", "setattr", "hasattr", "isinstance")
BUILTINS = (*BUILTINS, "max", "sum", "super", "next", "range", "type", "sorted", "reversed", "abs", "str", "int", "set")
LIBRARY = ("functools.partial", "functools.wraps", "copy.deepcopy", "einops.rearrange", "einops.pack", "math.sqrt")
LIBRARY = (*LIBRARY, "itertools.chain", "dataclasses.field", "collections.OrderedDict", "typing.cast", "os.a.b")
TORCH = ("float16", "float32", "autocast", "is_autocast_enabled", "get_autocast_dtype", "finfo", "device", "no_grad")
TORCH = (*TORCH, "amp.custom_fwd", "cuda.amp.autocast", "utils.checkpoint.checkpoint", "autograd.grad", "Tensor", "x.y")
CONSTANTS = ("0", "1", "-1", "2.5", "1e400", "3j", "None", "True", "...", "b'x'", "'a'", "'weight'", "'cuda'", "''")
CONSTANTS = (*CONSTANTS, "'float16'", "'b d -> d b'", "'\\ud800'", "f'{x!r:>{y}}'", "0x" + "f" * 4_000)
TENSORS = (
    "x.half()",
    "x.float()",
    "y.to(torch.bfloat16)",
    "torch.ones(2, 2, dtype=torch.float16)",
    "torch.tensor(1.5)",
)
TENSORS = (
    *TENSORS,
    "torch.zeros(2, 2)",
    "torch.arange(3)",
    "torch.mm(x, y)",
    "F.softmax(x, -1)",
    "x.to(y.dtype)",
    "x @ y",
)
TENSORS = (*TENSORS, "F.linear(x, y.half())", "torch.zeros_like(x, dtype=torch.float32)", "self.a(x)", "x[0].double()")
DECORATORS = ("property", "staticmethod", "classmethod", "torch.no_grad()", "torch.amp.custom_fwd", "C0", "f0", "f1(x)")
DECORATORS = (*DECORATORS, "functools.wraps(f2)", "dataclass", "dataclasses.dataclass(frozen=True)", "p.setter")
DECORATORS = (*DECORATORS, "torch.autocast('cuda', dtype=torch.float16)", "functools.lru_cache", "abc.abstractmethod")
BASES = ("nn.Module", "nn.Module", "nn.Sequential", "nn.Linear", "torch.autograd.Function", "dict", "object", "Nope.X")
BASES = (*BASES, *CLASSES, "metaclass=C1", "*args", "collections.OrderedDict", "typing.Generic[T]", "f0()")
IMPORTS = ("import torch", "from torch import nn", "import torch.nn.functional as F", "import functools, copy, math")
IMPORTS = (*IMPORTS, "from dataclasses import dataclass", "import dataclasses, collections, itertools, einops, typing")
STRANGE_IMPORTS = (
    "from torch import *",
    "from . import *",
    "from .other import *",
    "from .program import *",
    "import a.b",
)
STRANGE_IMPORTS = (*STRANGE_IMPORTS, "from ... import x as y", "from .other import C0, f0, D", "import program as x")
ANNOTATIONS = ("torch.Tensor", "'torch.Tensor'", "int", "C0", "'C1'", "Optional[C2]", "tuple[int, ...]", "List['C3']")
ANNOTATIONS = (*ANNOTATIONS, "torch.dtype", "C0 | None", "'('", "'\\0'", "Callable[[int], x]", "float", "str", "bool")
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>")
COMPARISONS = ("==", "!=", "<", "is", "is not", "in", "not in")
OTHER = """\
import torch
from torch import nn
from .program import *
from .program import C0 as C9, f0, D
D = {"a": nn.Linear, "b": C9, None: f0}
D["d"] = D
class C0(C9):
    x = D
    def forward(self, x): return super().forward(f0(x)) @ x
def f1(x): return f0(D["a"](1, 1)(x))
"""


class Writer:
    """Writes a program by the choices of ``draw``."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.left = draw.randrange(20, 400)

    def one(self, *choices: str) -> str:
        return self.draw.choice(choices)

    def chance(self, of: int) -> bool:
        return self.draw.randrange(of) == 0

    def several(self, make: Callable[[], str], most: int = 3) -> str:
        return ", ".join(make() for _ in range(self.draw.randrange(most + 1)))

    def program(self) -> str:
        lines = [*IMPORTS]
        lines += [self.one(*STRANGE_IMPORTS) for _ in range(self.draw.randrange(3))]
        while self.left > 0:
            kind = self.draw.randrange(7)
            if kind == 6:
                lines += self.module()
            else:
                lines += self.klass(0) if kind < 2 else self.function(0) if kind < 4 else self.statement(0)
        return "\n".join(lines) + "\n"

    # ---- statements -------------------------------------------------------------------------------------------

    def block(self, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw.randrange(1, 5)):
            lines += self.statement(depth)
        return ["    " + line for line in lines]

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        if depth < 6 and self.left > 0 and self.chance(3):
            return self.compound(depth)
        value = self.expression(3)
        simple = (
            *[f"{self.target()} = {value}"] * 8,
            *(f"{self.one(*VARIABLES)} {self.one(*OPERATORS)}= {value}", f"self.a @= {value}", f"a[{value}] += x"),
            *(f"{self.one(*VARIABLES)}: {self.annotation()} = {value}", f"return {value}", f"return {value}, x"),
            *(f"del {self.place()}", f"global {self.one(*VARIABLES)}", f"nonlocal {self.one(*VARIABLES)}", "pass"),
            *(f"raise {value}", f"assert {value}, {value}", "break", "continue", f"yield {value}", value, value),
            *(self.one(*STRANGE_IMPORTS[4:]), f"from .other import {self.one(*CLASSES)}", f"a, *b = {value}"),
            *[f"{self.one('x', 'y', 'z')} = {self.one(*TENSORS)}"] * 9,
            *(f"x[:, a] = {self.one(*TENSORS)}", f"torch.addmm(x, y, {value}, out=z)", f"x += {self.one(*TENSORS)}"),
            *(f"x[{value}] = {self.one(*TENSORS)}", f"x = torch.cat([x, {self.one(*TENSORS)}, *{value}])"),
            *(f"{self.one('a', 'd', 'self.b')}.append({value})", f"a = ({self.one('a', 'b')}, a)", f"d['d'] = {value}"),
        )
        return [self.one(*simple)]

    def compound(self, depth: int) -> list[str]:
        inside = depth + 1
        kind = self.draw.randrange(14)
        value = self.test() if self.chance(2) else self.expression(2)
        if kind < 3:
            lines = [f"if {value}:", *self.block(inside)]
            return [*lines, "else:", *self.block(inside)] if self.chance(2) else lines
        if kind < 5:
            return [f"for {self.target()} in {value}:", *self.block(inside), "else:", *self.block(inside)]
        if kind == 5:
            return [f"while {value}:", *self.block(inside)]
        if kind < 8:
            opened = self.one("torch.autocast('cuda')", "torch.autocast('cpu', torch.bfloat16)", f"a := {value}", value)
            opened = f"({opened})" if ":=" in opened else f"{opened} as {self.place()}" if self.chance(3) else opened
            return [f"{self.one('with', 'with', 'async with')} {opened}:", *self.block(inside)]
        if kind == 8:
            caught = ["except (A, AttributeError) as a:", *self.block(inside), "except:", *self.block(inside)]
            return ["try:", *self.block(inside), *caught, "else:", *self.block(inside), "finally:", *self.block(inside)]
        if kind == 9:
            patterns = ("1", "C0(a=x)", "[a, *b]", "{'k': x, **d}", "a | None", "str() as y", "torch.float16", "_")
            cases = [line for _ in range(2) for line in (f"case {self.pattern(patterns)}:", *self.block(inside))]
            return [f"match {value}:", *["    " + line for line in cases]]
        return self.function(depth) if kind < 13 else self.klass(depth)

    def pattern(self, patterns: tuple[str, ...]) -> str:
        return self.one(*patterns) + (f" if {self.expression(1)}" if self.chance(3) else "")

    def function(self, depth: int, *first: str) -> list[str]:
        name = self.one(*FUNCTIONS, "forward", "backward", "__init__", "__getattr__", "p", "setup_context", "__call__")
        lines = [f"@{self.one(*DECORATORS)}" for _ in range(self.draw.randrange(3)) if self.chance(2)]
        returns = f" -> {self.annotation()}" if self.chance(4) else ""
        keyword = "async def" if self.chance(10) else "def"
        return [*lines, f"{keyword} {name}({', '.join([*first, self.parameters()])}){returns}:", *self.block(depth + 1)]

    def parameters(self) -> str:
        return self.one(
            "x",
            "x, y=None",
            f"x: {self.annotation()}, *args, y={self.expression(1)}, **kwargs",
            "*args, **kwargs",
            f"x, /, y: {self.annotation()} = {self.expression(1)}, *, a=None",
            f"x: {self.annotation()}, z: {self.annotation()} = None",
        )

    def klass(self, depth: int) -> list[str]:
        lines = [f"@{self.one(*DECORATORS)}"] if self.chance(5) else []
        bases = sorted((self.one(*BASES) for _ in range(self.draw.randrange(3))), key=lambda base: "=" in base)
        named = [base for base in bases if "=" in base][:1]
        lines.append(f"class {self.one(*CLASSES)}({', '.join([b for b in bases if '=' not in b] + named)}):")
        for _ in range(self.draw.randrange(1, 5)):
            member = self.function(depth + 1, "self") if self.chance(2) else self.statement(depth + 1)
            lines += ["    " + line for line in member]
        return lines

    def annotation(self) -> str:
        return self.one(*ANNOTATIONS)

    def module(self) -> list[str]:
        """A module in the usual shape, with what it holds and what it does drawn."""
        made = [self.layer(2) for _ in range(3)]
        assigned = [f"self.{name} = {value}" for name, value in zip("abp", made, strict=True)]
        assigned += [self.one("self.register_buffer('T', torch.ones(1))", "self.max = nn.Parameter(torch.ones(2))", "")]
        used = [f"x = self.{self.one('a', 'b', 'p')}({self.one('x', 'y', self.expression(1))})" for _ in range(3)]
        used.insert(self.draw.randrange(3), f"for i in self.{self.one('a', 'b')}: x = i(x, {self.atom()})")
        used += self.statement(0)
        return [
            f"class {self.one(*CLASSES)}(nn.{self.one('Module', 'Module', 'Sequential', 'TransformerEncoderLayer')}):",
            *["    " + line for line in ["def __init__(self, a=None, b=4, y='gelu'):", "    super().__init__()"]],
            *["        " + line for line in assigned if line],
            *["    " + line for line in [f"def forward(self, {self.parameters()}):", *["    " + u for u in used]]],
            f"        return {self.one('x', 'self.T @ x', 'self.max + x', 'x, self.p', 'self.forward(x)')}",
        ]

    def layer(self, depth: int) -> str:
        inner = depth - 1
        if depth <= 0 or self.chance(3):
            return self.one(
                "nn.Linear(4, b)", "nn.LayerNorm(4, dtype=torch.float32)", f"{self.one(*CLASSES)}()", "a", "y"
            )
        held = ", ".join(self.layer(inner) for _ in range(self.draw.randrange(4)))
        return self.one(
            *(f"nn.Sequential({held})", f"nn.ModuleList([{held}])", f"nn.Sequential(*[{held}])", f"[{held}]"),
            *(f"nn.ModuleDict({{'a': {self.layer(inner)}}})", f"nn.ModuleList({self.layer(inner)} for i in range(b))"),
            *("nn.GRU(4, 4)", "nn.MultiheadAttention(8, 2)", f"{self.layer(inner)}.half()", f"getattr(nn, y)({held})"),
            *(f"nn.TransformerEncoder({self.layer(inner)}, 2)", "{'gelu': nn.GELU, 'x': a}[y]()", "nn.Linear"),
        )

    def test(self) -> str:
        return self.one(
            *(
                "x.dtype == torch.float16",
                "x.dtype in (torch.float16, torch.bfloat16)",
                "x.dtype != y.dtype",
                "x is None",
            ),
            *("torch.is_autocast_enabled()", "not torch.is_autocast_enabled('cuda')", "y is not None", "self.training"),
            *("x.device.type == 'cuda'", "x.device.type in ['cpu', 'mps']", "isinstance(x, torch.Tensor)", "'a' in d"),
            *("isinstance(a, (list, C0))", "hasattr(self, 'a')", "callable(a)", "y.startswith('a')", "a == 'b' + y"),
            *("isinstance(x, nn.Linear)", "x.is_floating_point()", "torch.jit.is_scripting()", "a.__name__ == 'f0'"),
        )

    # ---- expressions ------------------------------------------------------------------------------------------

    def place(self) -> str:
        return self.one(*VARIABLES, "self.a", "self.b.a", "d['a']", "a[0]", "C0.x", "torch.x", "T")

    def target(self) -> str:
        return self.one(*VARIABLES, self.place(), self.place(), "a, b", "(a, [b, *d]), x", "d[x, ...]", "*a, self.b")

    def atom(self) -> str:
        return self.one(
            *VARIABLES,
            *VARIABLES,
            *[self.one(*TENSORS)] * 9,
            self.one(*CONSTANTS),
            self.one(*CLASSES, *FUNCTIONS),
            self.place(),
        )

    def expression(self, depth: int) -> str:
        self.left -= 1
        if depth <= 0 or self.left < 0 or self.chance(4):
            return self.atom()
        e = self.expression
        inner = depth - 1
        kind = self.draw.randrange(16)
        if kind < 6:
            return f"{self.callee(inner)}({self.arguments(inner)})"
        if kind < 8:
            return f"({e(inner)} {self.one(*OPERATORS)} {e(inner)})"
        if kind == 8:
            return f"({self.one('-', 'not ', '~')}{e(inner)})"
        if kind == 9:
            return f"({e(inner)} {self.one(*COMPARISONS, 'and', 'or')} {e(inner)})"
        if kind == 10:
            return f"({e(inner)} if {e(inner)} else {e(inner)})"
        if kind == 11:
            return f"({e(inner)}).{self.one(*ATTRIBUTES)}" + f".{self.one(*ATTRIBUTES)}" * self.draw.choice(
                (0, 0, 1, 30)
            )
        if kind == 12:
            return f"({e(inner)})[{self.one(e(inner), ':, None', '...', '1:2', 'x, 0', '-1', f'{e(inner)}, ::a')}]"
        if kind == 13:
            shown = self.several(lambda: self.one("", "", "*") + self.atom())
            return self.one(f"[{shown}]", f"({shown},)" if shown else "()", f"{{'a': {e(inner)}, **{e(inner)}, x: y}}")
        if kind == 14:
            loop = f"for {self.one('x', 'a, b', 'i')} in {e(inner)} if {e(inner)}"
            return self.one(f"[{e(inner)} {loop}]", f"{{{e(inner)}: {e(inner)} {loop}}}", f"({e(inner)} {loop})")
        return self.one(
            f"(lambda x, *args, y={self.atom()}: {e(inner)})", f"(a := {e(inner)})", f"(await ({e(inner)}))"
        )

    def callee(self, depth: int) -> str:
        return self.one(
            *(self.one(*OPERATIONS), self.one(*OPERATIONS), self.one(*BUILTINS), self.one(*LIBRARY), "super()", "self"),
            *(f"nn.{self.one(*LAYERS)}", f"torch.{self.one(*TORCH)}", self.one(*FUNCTIONS), self.one(*CLASSES)),
            *(f"({self.expression(depth)}).{self.one(*METHODS)}", f"{self.one(*VARIABLES)}.{self.one(*METHODS)}"),
            *(
                f"'a.b'.{self.one(*METHODS)}",
                f"('gelu' + y).{self.one(*METHODS)}",
                f"{self.one(*CLASSES)}.__name__.lower",
            ),
            *(f"super().{self.one('__init__', 'forward')}", f"{self.one(*CLASSES)}.apply", self.place()),
        )

    def arguments(self, depth: int) -> str:
        given = [self.one("", "", "", "*") + self.expression(depth) for _ in range(self.draw.randrange(4))]
        keywords = self.draw.sample(("dtype", "out", "dim", "input", "x", "dtype_out", "enabled", "device_type"), 2)
        given += [f"{name}={self.expression(depth)}" for name in keywords if self.chance(3)]
        return ", ".join([*given, f"**{self.atom()}"] if self.chance(8) else given)


def written(draw: Random) -> str:
    """A program that parses."""
    return Writer(draw).program()


# ---- programs made of others --------------------------------------------------------------------------------------


class _Mutation(ast.NodeTransformer):
    """Swaps, drops, repeats and wraps statements, and puts expressions into each other's places."""

    def __init__(self, draw: Random, tree: ast.Module) -> None:
        self.draw = draw
        given = ast.walk(deepcopy(tree))
        self.expressions = [n for n in given if isinstance(n, (ast.Call, ast.BinOp, ast.Attribute, ast.Name))]
        self.expressions = [n for n in self.expressions if isinstance(getattr(n, "ctx", ast.Load()), ast.Load)]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and self.draw.randrange(4) == 0:
                setattr(node, name, self._changed(body) or [ast.Pass()])
        replaceable = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), ast.Load)
        if replaceable and self.expressions and self.draw.randrange(12) == 0:
            return self.draw.choice(self.expressions)
        return node

    def _changed(self, body: list[ast.stmt]) -> list[ast.stmt]:
        body = [*body]
        i, j = self.draw.randrange(len(body)), self.draw.randrange(len(body))
        kind = self.draw.randrange(6)
        if kind == 0:
            body[i], body[j] = body[j], body[i]
        elif kind == 1:
            del body[i]
        elif kind == 2:
            body.insert(j, body[i])
        elif kind == 3:
            region = ast.parse("with torch.autocast('cuda', dtype=torch.float16): pass").body[0]
            assert isinstance(region, ast.With)
            region.body, body[i] = [body[i]], region
        elif kind == 4:
            body[i] = ast.For(ast.Name("i", ast.Store()), ast.Name("x", ast.Load()), [body[i]], [], None)
        else:
            body[i] = ast.Try([body[i]], [ast.ExceptHandler(None, None, [body[j]])], [], [ast.Pass()])
        return body


def mutated(draw: Random, text: str) -> str:
    """A program like another, with some of it in other places."""
    tree = ast.parse(text)
    return ast.unparse(ast.fix_missing_locations(_Mutation(draw, tree).visit(tree)))


# ---- what is said of a program ------------------------------------------------------------------------------------


@contextmanager
def sessions() -> Iterator[list[Session]]:
    """The sessions of the analyses made inside the ``with`` block."""
    made: list[Session] = []

    class Kept(Session):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    with mock.patch.object(analysis, "Session", Kept):
        yield made


def said(path: Path, text: str) -> str:
    """The facts about a program and the dtypes of its expressions. Fails where an analysis exceeds its budget."""
    data = text.encode("utf-8", "surrogatepass")
    with sessions() as made:
        facts = analysis.analyse(Source(path, data), scenarios=SCENARIOS, device="cuda", torch_version=(2, 13))
        found = file_dtypes(Source(path, data), scenarios=SCENARIOS, device="cuda", torch_version=(2, 13))
    assert len(made) == 2
    assert all(session.steps <= MAX_STEPS for session in made)
    lines = [*_facts(facts)]
    for row in found.rows:
        origin = (row.origin.span, row.origin.what) if row.origin is not None else None
        lines.append(f"{row.span} {row.dtypes} {row.maybe} {origin}")
    return "\n".join(lines)


def _facts(facts: FileFacts) -> Iterator[str]:
    for c in conflicts(facts):
        yield f"{facts.span(c.node)} {c.op} {c.kind} {c.left_dtype} {c.right_dtype} {c.scenarios}"
        yield f"{c.standing.certainty} {c.causes} {c.culprit} {c.raises}"
    for call in facts.calls:
        yield f"{facts.span(call.node)} {call.name} {call.autocast} {call.live} {sorted(call.arguments)}"
    for region in facts.regions:
        yield f"{facts.span(region.node)} {region.name} {region.before} {region.inside} {region.nested}"
    for function in facts.autograd_functions:
        yield f"{facts.span(function.node)} {function.sensitive_forward} {function.sensitive_backward}"


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    folder = Path(sys.argv[3])
    everything = hashlib.sha256()
    for seed in range(first, last):
        text = written(Random(seed))
        everything.update(said(folder / "program.py", text).encode("utf-8", "surrogatepass"))
    print(everything.hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
