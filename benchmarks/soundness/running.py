"""Runs a program for real and records the dtype of every tensor that an expression gives."""

from __future__ import annotations

import ast
import contextlib
import sys
import types
import warnings
from random import Random
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

Position = tuple[int, int, int, int]
"""Row, column, end row, end column; from 1, the end exclusive."""
Recorded = dict[Position, set[str]]

OBSERVED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute, ast.Name)
RUNS = 3
"""Times that a program runs in each scenario, each time with other answers of chance."""
CALLS = 2
"""Times that a run calls the module: what the first call leaves in its attributes is there in the second."""
MAX_TICKS = 150
"""Passes over loops and calls of functions after which a run ends."""
MAX_FRAMES = 400
DTYPES = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16, "autocast-bf16": None}
"""Scenarios that a program runs in, by name, with what its module is converted to."""


class Ended(BaseException):
    """The program went on for too long."""


class Chance(types.ModuleType):
    """What decides which way a program goes: the module ``chance`` that it imports."""

    def __init__(self, seed: int) -> None:
        super().__init__("chance")
        self._draw = Random(seed)
        self._ticks = 0

    def toss(self) -> bool:
        return self._draw.random() < 0.5

    def pick(self, below: int) -> int:
        return self._draw.randrange(below)

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks > MAX_TICKS:
            raise Ended


class _Instrument(ast.NodeTransformer):
    """Hands what each expression gives to ``__saw__`` with the expression's place."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.arguments, ast.MatchValue, ast.MatchClass, ast.Import, ast.ImportFrom)):
            return node
        place = _place(node) if isinstance(node, ast.expr) else None
        loaded = isinstance(getattr(node, "ctx", None), ast.Load) or not hasattr(node, "ctx")
        wanted = isinstance(node, OBSERVED) and loaded
        target = node.target if isinstance(node, ast.AugAssign) else None
        statement_place = _place(node) if isinstance(node, ast.AugAssign) else None
        self.generic_visit(node)
        if isinstance(target, ast.Name) and statement_place is not None:
            return [node, ast.Expr(_saw(statement_place, ast.Name(target.id, ast.Load())))]
        return _saw(place, node) if wanted and place is not None and isinstance(node, ast.expr) else node


def _place(node: ast.expr | ast.stmt) -> Position:
    end_row, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return node.lineno, node.col_offset + 1, end_row, end_column + 1


def _saw(place: Position, node: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("__saw__", ast.Load()), [ast.Constant(place), node], [])


def record(text: str, seed: int) -> dict[str, Recorded]:
    """The dtypes of each expression of a program's text, by scenario. The text has ASCII characters only."""
    tree = ast.fix_missing_locations(_Instrument().visit(ast.parse(text)))
    code = compile(tree, "program.py", "exec")
    found: dict[str, Recorded] = {}
    for scenario in DTYPES:
        recorded = found[scenario] = {}
        for run in range(RUNS):
            _run(code, scenario, Chance(seed * RUNS + run), recorded)
    return found


def _run(code: types.CodeType, scenario: str, chance: Chance, recorded: Recorded) -> None:
    def saw(place: Position, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            recorded.setdefault(place, set()).add(str(value.dtype).removeprefix("torch."))
        return value

    names: dict[str, Any] = {"__name__": "program", "__saw__": saw}
    with _importable(chance), contextlib.suppress(Exception, Ended):
        exec(code, names)
        model, dtype = names["Model"](), DTYPES[scenario]
        if dtype is not None:
            model.to(dtype)
        region = torch.autocast("cpu", torch.bfloat16) if scenario.startswith("autocast") else contextlib.nullcontext()
        with torch.no_grad(), region:
            for _ in range(CALLS):
                with contextlib.suppress(Exception):
                    model(torch.ones(4, 4, dtype=dtype))


@contextlib.contextmanager
def _importable(chance: Chance) -> Iterator[None]:
    before = sys.modules.get("chance")
    sys.modules["chance"] = chance
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(MAX_FRAMES, _depth() + 200))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)
        if before is None:
            del sys.modules["chance"]
        else:
            sys.modules["chance"] = before


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
