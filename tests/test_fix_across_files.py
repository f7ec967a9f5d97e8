"""What --fix reports of a project is what the next check finds, also where a fix changes another file's findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = """\
import torch


def prepared(x: torch.Tensor):
    x.to(torch.float32)
    return x
"""
USER = """\
import torch
from torch import nn

from library import prepared


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        return torch.matmul(prepared(x), self.out.weight)
"""
FIX = ("--fix", "--unsafe-fixes")


def found(folder: Path, *arguments: str) -> list[tuple[str, str, int]]:
    result = amplint("check", str(folder), "--isolated", "--output-format", "json", *arguments)
    return [(f["code"], f["filename"], f["location"]["row"]) for f in json.loads(result.stdout)]


@pytest.mark.parametrize(("first", "second"), [("library", "a_user"), ("library", "z_user")])
def test_a_fix_that_changes_what_is_found_elsewhere(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / f"{first}.py").write_text(LIBRARY)
    (tmp_path / f"{second}.py").write_text(USER)
    before = found(tmp_path)
    assert [code for code, *_ in before] == ["AMP112"]
    difference = amplint("check", str(tmp_path), "--isolated", "--diff", "--unsafe-fixes").stdout
    said = found(tmp_path, *FIX)
    after = {path: path.read_text() for path in tmp_path.iterdir()}
    assert "x = x.to(torch.float32)" in after[tmp_path / "library.py"]
    assert said == found(tmp_path)
    assert found(tmp_path, *FIX) == said
    assert {path: path.read_text() for path in tmp_path.iterdir()} == after
    for path, text in after.items():
        added = [line for line in text.splitlines() if line not in (LIBRARY + USER).splitlines()]
        assert added
        assert all(f"+{line}\n" in difference for line in added), path
