"""Properties: what several operands promote to and paths join to is what torch gives, whatever a caller decides.

A lane stands for many dtypes: those of its mask, one for each symbol however often it appears, and of a caller's any
that autocast knows. Each draw settles all of it, asks torch, and looks the answer up in what was inferred.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.dtypes import (
    AUTOCASTABLE,
    BITS,
    NAMES,
    UNKNOWN_LANE,
    Lane,
    Symbol,
    bits_of,
    join_lanes,
    names_of,
    promote_lanes,
)
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY = (1 << len(NAMES)) - 1
SYMBOLS = tuple(Symbol(f"argument {number}") for number in range(3))
DIMS = (0, 1, None)


class Leaf(NamedTuple):
    lane: Lane
    dim: int | None


class Node(NamedTuple):
    how: str
    left: Any
    right: Any


def leaves() -> st.SearchStrategy[Leaf]:
    passed = st.sampled_from([mask for mask in range(1, AUTOCASTABLE + 1) if mask & AUTOCASTABLE == mask])
    lanes = st.one_of(
        st.sampled_from([Lane(BITS[name]) for name in NAMES]),
        st.builds(lambda mask, open: Lane(mask, None, False, open), st.integers(1, ANY), st.booleans()),
        st.builds(lambda mask, number: Lane(mask, SYMBOLS[number], True), passed, st.integers(0, 2)),
        st.just(UNKNOWN_LANE),
    )
    return st.builds(Leaf, lanes, st.sampled_from(DIMS))


trees = st.recursive(
    leaves(), lambda inner: st.builds(Node, st.sampled_from(["promote", "promote", "join"]), inner, inner), max_leaves=6
)


def inferred(tree: Leaf | Node) -> tuple[Lane, int | None]:
    if isinstance(tree, Leaf):
        return tree
    (a, a_dim), (b, b_dim) = inferred(tree.left), inferred(tree.right)
    if tree.how == "join":
        return join_lanes(a, b), a_dim if a_dim == b_dim else None
    dim = 1 if 1 in (a_dim, b_dim) else 0 if a_dim == b_dim == 0 else None
    return promote_lanes(a, a_dim, b, b_dim), dim


def symbols_of(tree: Leaf | Node) -> Iterator[Lane]:
    if isinstance(tree, Leaf):
        if tree.lane.symbol is not None:
            yield tree.lane
    else:
        yield from symbols_of(tree.left)
        yield from symbols_of(tree.right)


def settled(draw: Any, tree: Leaf | Node, decided: dict[Symbol, int]) -> torch.Tensor:
    """What torch gives where everything is decided."""
    if isinstance(tree, Leaf):
        dim = tree.dim if tree.dim is not None else draw(st.sampled_from([0, 1]))
        if tree.lane.symbol is not None:
            bit = decided[tree.lane.symbol]
        else:
            bit = draw(st.sampled_from([*bits_of(ANY if tree.lane.open else tree.lane.mask)]))
        return torch.empty((1,) * dim, dtype=getattr(torch, names_of(bit)[0]))
    if tree.how == "join":
        return settled(draw, tree.left if draw(st.booleans()) else tree.right, decided)
    a, b = settled(draw, tree.left, decided), settled(draw, tree.right, decided)
    return torch.empty((1,) * max(a.dim(), b.dim()), dtype=torch.result_type(a, b))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@settings(max_examples=800, deadline=None, derandomize=True, database=None)
@given(st.data(), trees, st.booleans())
def test_of_several_operands_and_paths(data: st.DataObject, tree: Leaf | Node, wild: bool) -> None:
    """``wild``: callers pass other dtypes than those that they are taken to."""
    lane, dim = inferred(tree)
    decided: dict[Symbol, int] = {}
    for symbol in SYMBOLS:
        allowed = AUTOCASTABLE
        for passed in symbols_of(tree):
            allowed &= passed.mask if passed.symbol is symbol and not wild else AUTOCASTABLE
        if not allowed:
            return
        decided[symbol] = data.draw(st.sampled_from([*bits_of(allowed)]))
    truth = settled(data.draw, tree, decided)
    bit = BITS[str(truth.dtype).removeprefix("torch.")]
    assert dim is None or dim == truth.dim()
    if lane.known and not (wild and lane.assumed):
        assert bit & lane.mask
    if lane.symbol in decided:
        assert bit == decided[lane.symbol]


# ---- programs -----------------------------------------------------------------------------------------------------

OPERANDS = (
    *("a", "b", "x", "y"),
    *(
        "2",
        "2.5",
        "True",
        "1j",
        "self.scale",
        "torch.tensor(2.0)",
        "torch.tensor(3)",
        "torch.ones(2, dtype=torch.int64)",
    ),
    *(
        "torch.tensor(2.0, dtype=torch.float64)",
        "torch.ones(2, 2, dtype=torch.float16)",
        "torch.ones(2, 2)",
        "x.shape[0]",
    ),
)
FORMS = (
    *(
        "{} + {}",
        "{} * {}",
        "{} / {}",
        "{} - {}",
        "torch.add({}, {})",
        "torch.where(x > 0, {}, {})",
        "torch.mul({}, {})",
    ),
    *("torch.maximum({}, {})", "torch.cat([{}, {}, x])", "torch.stack([{}, {}, y])", "torch.addcmul({}, {}, y)"),
    *("torch.mm({}, {})", "{} @ {}", "torch.einsum('ij,jk->ik', {}, {})", "{} ** {}", "torch.lerp({}, {}, 0.5)"),
    *("({} > {}) * x", "({}, {})[0]", "torch.baddbmm(x[None], y[None], ({} * x)[None])", "torch.pow({}, {})"),
)
REGIONS = ("torch.autocast('cpu', enabled=False)", "torch.autocast('cpu', dtype=torch.bfloat16)", "torch.no_grad()")
REGIONS = (*REGIONS, "torch.autocast('cpu', dtype=torch.float16)", "torch.inference_mode()")
NAMED = tuple(scenario for name in ("autocast-bf16", "bf16") if (scenario := find_scenario(name)) is not None)


@st.composite
def programs(draw: Any) -> str:
    """A module that another uses, so that callers decide the dtypes of ``x`` and ``y``."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        forms = [
            draw(st.sampled_from(FORMS)).format(draw(st.sampled_from(OPERANDS)), draw(st.sampled_from(OPERANDS)))
            for _ in range(2)
        ]
        name = "ab"[number % 2]
        kind = draw(st.integers(0, 3))
        if kind == 0:
            region = draw(st.sampled_from(REGIONS))
            lines += [f"with {region}:", f"    {name} = {forms[0]}"]
        elif kind == 1:
            lines += [
                "if flag:",
                f"    {name} = {forms[0]}",
                "else:",
                f"    {name} = {forms[1]}",
                f"{name} = {name} * x",
            ]
        else:
            lines += [f"{name} = {forms[0]}"]
    body = "\n".join("        " + line for line in ["a, b = x, y", *lines, "return a"])
    return (
        "import torch\nfrom torch import nn\n\n\nclass Inner(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(2, 2))\n\n"
        f"    def forward(self, x: torch.Tensor, y: torch.Tensor, flag: bool):\n{body}\n\n\n"
        "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = Inner()\n"
    )


def statements(text: str) -> list[ast.Assign]:
    assigned = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign)]
    return [node for node in assigned if isinstance(node.targets[0], ast.Name)]


def run(text: str, low: torch.dtype | None, inputs: tuple[str, str], flag: bool, seen: dict[int, set[str]]) -> None:
    """Run ``forward`` up to where torch raises, noting what each statement binds, by row."""
    space: dict[str, Any] = {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, [s for statement in body for s in _noted(statement)])
    space["_note"] = lambda row, value: (
        seen.setdefault(row, set()).add(str(value.dtype)[6:]) if isinstance(value, torch.Tensor) else None
    )
    exec(compile(ast.fix_missing_locations(tree), "program", "exec"), space)
    module = space["Inner"]()
    if low is None:
        module.to(torch.bfloat16)
    tensors = [torch.ones(2, 2, dtype=getattr(torch, name)) for name in inputs]
    try:
        with torch.autocast("cpu", dtype=low or torch.bfloat16, enabled=low is not None):
            module(*tensors, flag)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
        return


def _noted(statement: ast.AST) -> list[ast.AST]:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return [statement, *ast.parse(f"_note({statement.lineno}, {statement.targets[0].id})").body]
    return [statement]


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(programs())
def test_of_programs_whose_callers_decide(text: str) -> None:
    found = file_dtypes(
        Source(Path("/random/program.py"), text.encode()),
        scenarios=(CONTROL, *NAMED),
        device="cpu",
        torch_version=(2, 13),
    )
    rows = {(row.span.start.row, row.span.start.column, row.span.end.column): row for row in found.rows}
    for lane, scenario in enumerate(NAMED, start=1):
        low = torch.bfloat16 if scenario.autocast else None
        choices = ("float32", "bfloat16") if scenario.autocast else ("bfloat16",)
        seen: dict[int, set[str]] = {}
        for inputs in itertools.product(choices, repeat=2):
            for flag in (True, False):
                run(text, low, (inputs[0], inputs[1]), flag, seen)
        for node in statements(text):
            value = node.value
            row = rows.get((value.lineno, value.col_offset + 1, (value.end_col_offset or 0) + 1))
            said = row.dtypes[lane] if row is not None and not row.maybe else None
            given_by_torch = seen.get(node.lineno, set())
            assert said is None or given_by_torch <= {*said}, f"{text}\n{scenario.name}: {ast.unparse(node)}"
