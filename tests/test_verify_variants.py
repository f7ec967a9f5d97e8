"""A class is built and called in more than one way where options decide which of its lines run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from build_harness import recipe_of
from test_verify_cli import rows_of, write
from torch import nn

from amplint.verify.build import Deadline, variants
from amplint.verify.build.guards import Sources
from amplint.verify.build.variants import MOST

if TYPE_CHECKING:
    from pathlib import Path

    from test_verify_cli import Row

UPCAST = "x = self.proj(x.float())"
CLASS = """\
class Block(nn.Module):
    def __init__(self, dim: int, gated: bool = False, kind: str = "plain", scale=None):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim) if gated else None
        self.kind = kind
        self.scale = scale

    def forward(self, x, bias: torch.Tensor | None = None, *, twice: bool = False):
{body}
        return self.finish(x)

    def finish(self, x):
        {finish}
        return x
"""

NEVER = Deadline.after(float("inf"))


def block(body: str, finish: str = "pass") -> str:
    return CLASS.format(body="\n".join(f"        {line}" for line in body.splitlines()), finish=finish)


def verified(folder: Path, text: str, status: int = 1) -> list[Row]:
    root = write(folder, model=text)
    return rows_of("model.py::Block", "--scenario", "bf16", "--isolated", "--select", "AMP102", cwd=root, status=status)


@pytest.mark.parametrize(
    ("body", "finish", "variant"),
    [
        (f"if self.gate is not None:\n    {UPCAST}", "pass", "gated=True"),
        (f"if self.kind == 'wide':\n    {UPCAST}", "pass", "kind='wide'"),
        (f"if self.kind == 'wide' and self.gate is not None:\n    {UPCAST}", "pass", "gated=True, kind='wide'"),
        (f"if not self.gate:\n    return x\n{UPCAST}", "pass", "gated=True"),
        (f"if bias is not None:\n    {UPCAST}", "pass", "bias passed"),
        (f"if twice:\n    {UPCAST}", "pass", "twice=True"),
        ("pass", f"if self.gate is not None: {UPCAST}", "gated=True"),
    ],
)
def test_the_options_on_the_way_to_a_finding_are_chosen(tmp_path: Path, body: str, finish: str, variant: str) -> None:
    rows = verified(tmp_path, block(body, finish))
    confirmed = [row for row in rows if row["verdict"] == "confirmed"]
    assert {row["code"] for row in confirmed} == {"AMP102"}
    assert {frozenset((row["variant"] or "").split(", ")) for row in confirmed} == {frozenset(variant.split(", "))}
    if "passed" in variant:
        assert all("bfloat16[2, 15, 32], bfloat16[2, 15, 32])" in row["inputs"] for row in confirmed)
    else:
        assert all(variant.split(", ")[0] in row["built"] + row["inputs"] for row in confirmed)
    assert not any(row["verdict"] == "not-reached" for row in rows)


def test_what_no_option_reaches_is_not_reached(tmp_path: Path) -> None:
    rows = verified(tmp_path, block(f"if x.dim() == 17:\n    {UPCAST}"), status=0)
    assert {row["verdict"] for row in rows} == {"not-reached"}
    assert {row["variant"] for row in rows} == {None}


def test_a_finding_that_a_variant_reached_without_failing_is_not_reproduced(tmp_path: Path) -> None:
    text = block(f"if twice:\n    self.proj = nn.Identity()\n    {UPCAST}")
    rows = verified(tmp_path, text, status=0)
    assert {(row["verdict"], row["variant"]) for row in rows} == {("not-reproduced", "twice=True")}


class Unannotated(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, context=None, quick=None):  # type: ignore[no-untyped-def]
        if context is not None:
            x = x + context
        return self.proj(x) if quick else self.proj(x) + 1


def test_an_optional_without_annotation_is_a_tensor_where_the_forward_computes_with_it() -> None:
    found = list(variants(recipe_of(Unannotated), (), deadline=NEVER))
    assert "context passed" in [variant.label for variant in found]
    for variant in found:
        made = variant.recipe.make()
        given = dict(zip(("x", "context", "quick"), made.args, strict=False)) | made.kwargs
        assert not isinstance(given.get("quick"), torch.Tensor)


class Options(nn.Module):
    def __init__(self, dim: int, a: bool = False, b: bool = True, c: bool = False, d: bool = False, e: bool = False):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.flags = [a, b, c, d, e]
        self.a, self.b, self.c, self.d, self.e = a, b, c, d, e
        self.unused = e

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.a:
            raise NotImplementedError("not with a")
        if self.b or self.c or self.d or self.e:
            return self.proj(x)
        return self.proj(x) + 1


def test_variants_are_bounded_run_and_differ() -> None:
    recipe = recipe_of(Options)
    found = list(variants(recipe, (), deadline=NEVER))
    labels = [variant.label for variant in found]
    assert 0 < len(labels) <= MOST
    assert len(set(labels)) == len(labels)
    assert "b=False" in labels
    assert "a=True" not in labels
    for variant in found:
        made = variant.recipe.make()
        made.module(*made.args, **made.kwargs)


def test_only_names_the_variants_to_make() -> None:
    recipe = recipe_of(Options)
    assert [v.label for v in variants(recipe, (), deadline=NEVER, only=("b=False",))] == ["b=False"]
    assert list(variants(recipe, (), deadline=NEVER, only=())) == []


def test_a_written_recipe_has_no_variants() -> None:
    recipe = recipe_of(Options, factory=lambda: (Options(4), (torch.randn(2, 4),)))
    assert list(variants(recipe, (), deadline=NEVER)) == []


class Inherits(Options):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


def test_guards_are_read_in_the_class_that_holds_the_line() -> None:
    sources = Sources.of(Inherits)
    row = Options.forward.__code__.co_firstlineno
    wishes = sources.around(__file__, row + 4)
    assert [(wish.name, wish.wanted) for wish in wishes] == [("a", "false"), ("b", "true")]
    assert sources.around(__file__, 1) == []
    assert sources.made_from("b") == ["b"]


OWNED = """\
class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, table):
        return torch.matmul(self.proj(x), table)


class Model(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.block = Block(dim)
        self.dim = dim

    def forward(self, x):
        return self.block(x, torch.eye(self.dim))
"""


def test_a_block_is_run_inside_the_class_that_owns_it(tmp_path: Path) -> None:
    """Alone it gets its table in the dtype of the rest; its owner passes float32."""
    rows = verified(tmp_path, OWNED)
    confirmed = [row for row in rows if row["verdict"] == "confirmed"]
    assert {row["variant"] for row in confirmed} == {"inside Model"}
    assert {row["built"] for row in confirmed} == {"Model()"}
    assert {row["location"]["row"] for row in confirmed} == {11}


def test_a_failure_of_the_owner_is_not_the_blocks(tmp_path: Path) -> None:
    text = OWNED.replace(
        "self.block(x, torch.eye(self.dim))", "self.block(x, torch.eye(self.dim).to(x)) @ torch.eye(self.dim)"
    )
    assert {row["verdict"] for row in verified(tmp_path, text, status=0)} == {"clean"}
