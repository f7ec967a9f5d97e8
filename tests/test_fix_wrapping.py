"""Fixes stay within the line length of the project's formatter, and wrap as Black and ruff do."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from amplint.finding import Edit
from amplint.fix.edits import apply_changes, changes
from amplint.fix.wrapping import wrapped
from amplint.line_length import line_length
from amplint.source import Location, Source, SourceError, Span

CODE = """\
import torch
from torch import nn


class Scatter(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x, index):
        collected = torch.zeros(4, 8, device=x.device)
        collected.index_add_(0, index, self.proj(x))
        return collected
"""
FIXED = {
    60: """\
        collected.index_add_(
            0, index, self.proj(x).to(collected.dtype)
        )
""",
    53: """\
        collected.index_add_(
            0,
            index,
            self.proj(x).to(collected.dtype),
        )
""",
    80: """\
        collected.index_add_(0, index, self.proj(x).to(collected.dtype))
""",
    40: """\
        collected.index_add_(0, index, self.proj(x).to(collected.dtype))
""",
}


def fixed(folder: Path) -> str:
    (folder / "scatter.py").write_text(CODE)
    command = [sys.executable, "-m", "amplint", "check", "--fix", "scatter.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "scatter.py").read_text()


@pytest.mark.parametrize("longest", FIXED)
def test_a_fix_stays_within_the_line_length(tmp_path: Path, longest: int) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.ruff]\nline-length = {longest}\n")
    before = "        collected.index_add_(0, index, self.proj(x))\n"
    assert fixed(tmp_path) == CODE.replace(before, FIXED[longest])


def test_without_a_formatter_lines_stay_one(tmp_path: Path) -> None:
    assert "self.proj(x).to(collected.dtype))\n" in fixed(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "length"),
    [
        ("pyproject.toml", "[tool.black]\nline-length = 100\n", 100),
        ("pyproject.toml", "[tool.black]\n", 88),
        ("pyproject.toml", "[tool.ruff.lint]\nselect = ['E']\n", 88),
        ("ruff.toml", "line-length = 99\n", 99),
        (".ruff.toml", "", 88),
        ("pyproject.toml", "[project]\nname = 'x'\n", None),
        ("pyproject.toml", "not toml at all", None),
    ],
)
def test_what_the_formatter_says(tmp_path: Path, name: str, text: str, length: int | None) -> None:
    (tmp_path / name).write_text(text)
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    assert line_length(inner / "module.py") == length


LINES = st.sampled_from(
    [
        "out = first @ second",
        "    return self.run(first, *rest, key=second, **more)",
        "value: Tensor = table[first, second]",
        "total += first + second * third",
        "call((first), second, (third for third in first))",
        "x = first(second)(third).attribute",
        "first.second(third)",
        "\tx = first(second, third)",
    ]
)


@given(st.lists(LINES, min_size=1, max_size=4), st.integers(10, 70), st.sampled_from(["\n", "\r\n"]), st.data())
def test_wrapping_changes_no_program(lines: list[str], longest: int, newline: str, data: st.DataObject) -> None:
    blocks = [f"def f{n}():{newline}{line}" if line[0].isspace() else line for n, line in enumerate(lines)]
    source = Source(Path("/x.py"), (newline.join(blocks) + newline).encode())
    name = data.draw(st.sampled_from(["first", "second", "third"]))
    edits = []
    for row, line in enumerate(source.lines, 1):
        column = line.rfind(name)
        if column >= 0:
            place = Location(row, column + len(name) + 1)
            edits.append(Edit(Span(place, place), ".to(somewhere.dtype)"))
    made = changes(source, edits)
    after = apply_changes(source, made)
    assume(_parses(after))
    wraps = wrapped(source, made, after, longest)
    result = apply_changes(after, wraps)
    assert ast.dump(result.tree) == ast.dump(after.tree)
    assert all(line.endswith(newline) for line in result.lines)
    assert result.text.count("\r\n") * (newline == "\r\n") == result.text.count("\n") * (newline == "\r\n")


def _parses(source: Source) -> bool:
    try:
        return source.tree is not None
    except SourceError:
        return False
