"""Functions as targets: run as a whole with arguments made from their signatures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from test_verify_cli import rows_of, verify, write
from torch import nn

from amplint.verify.build import Built, CannotBuild, Deadline, find_recipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def attend(q, k, v, scale: float, mask=None):  # type: ignore[no-untyped-def]
    scores = q @ k.transpose(-2, -1) * scale
    return scores.softmax(-1) @ v


def write_rows(table: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    table.index_add_(0, index, rows)


def loss(logits: torch.Tensor, targets: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    return F.cross_entropy(logits, targets, reduction=reduction)


def through(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model(x)
    return result


def chosen(x: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "squared":
        return x**2
    if kind == "rooted":
        return x.abs().sqrt()
    raise ValueError(kind)


def bilinear(x: torch.Tensor, weight: torch.Tensor, dim: int) -> torch.Tensor:
    return F.linear(x, weight).sum(dim)


def made(function: Callable[..., Any]) -> Built:
    recipe = find_recipe(function, namespace=sys.modules[__name__], deadline=Deadline.after(40))
    built = recipe.make()
    built.module(*built.args, **built.kwargs)
    return built


@pytest.mark.parametrize("function", [attend, write_rows, loss, through, chosen, bilinear])
def test_arguments_are_found(function: Callable[..., Any]) -> None:
    built = made(function)
    assert built.module is function
    assert built.how == "called with arguments made from its signature"
    sizes = [size for value in built.args if isinstance(value, torch.Tensor) for size in value.shape]
    assert min(sizes) > 1


def test_what_needs_more_than_values_says_why() -> None:
    def steps(engine, x):  # type: ignore[no-untyped-def]
        raise LookupError(f"no engine like {type(engine).__name__}")

    with pytest.raises(CannotBuild, match="no engine like") as caught:
        made(steps)
    assert "return steps, (...,), {}  # engine, x" in caught.value.advice


FILE = """\
def add_rows(rows, index):
    table = torch.zeros(4, 16)
    table.index_add_(0, index, rows)
    return table


def normed(x, layer: nn.Linear):
    return layer(x.float())


def fine(x):
    return x * 2


def reports():
    return torch.zeros(2)
"""


def test_functions_with_findings_are_run_whole(tmp_path: Path) -> None:
    root = write(tmp_path, model=FILE)
    options = ("--scenario", "bf16", "--isolated")
    rows = rows_of("model.py", *options, "--select", "AMP105", cwd=root, status=1)
    assert {(row["target"].rpartition("::")[2], row["verdict"], row["code"], row["built"]) for row in rows} == {
        ("add_rows", "confirmed", "AMP105", "add_rows")
    }
    assert [row["mode"] for row in rows] == ["train", "eval", "eval-no-grad"]
    rows = rows_of("model.py::normed", *options, cwd=root, status=1)
    assert {(row["verdict"], row["built"]) for row in rows} == {("confirmed", "normed")}
    assert all("Linear(...)" in row["inputs"] for row in rows)


def test_a_function_by_name(tmp_path: Path) -> None:
    root = write(tmp_path, model=FILE)
    rows = rows_of("model.py::fine", "--scenario", "bf16", "--isolated", cwd=root, status=0)
    assert {row["verdict"] for row in rows} == {"clean"}
    done = verify("model.py::reports", "--scenario", "bf16", "--isolated", "--run-on", "cpu", cwd=root)
    assert done.status == 2
    assert "it takes no argument that has to be given" in done.stdout


def test_the_files_example_may_speak_for_a_function(tmp_path: Path) -> None:
    example = "\n\ndef amplint_example():\n    return add_rows, (torch.ones(2, 16), torch.tensor([0, 3])), {}\n"
    root = write(tmp_path, model=FILE + example)
    rows = rows_of("model.py", "--scenario", "bf16", "--isolated", "--select", "AMP105", cwd=root, status=1)
    assert {row["inputs"] for row in rows} == {"(bfloat16[2, 16], int64[2])"}
