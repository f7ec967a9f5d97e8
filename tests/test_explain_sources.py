"""``amplint explain``: a file that holds a traceback, and families of rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """\
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj(x.float())
"""
TRACEBACK = """\
2026-01-01 epoch 3 of 4
Traceback (most recent call last):
  File "model.py", line 10, in forward
    return self.proj(x.float())
RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
"""


@pytest.mark.parametrize("name", ["train.log", "output", "logs/rank 0.txt", "index-writes"])
def test_a_file_is_read(project: Path, name: str) -> None:
    (project / "model.py").write_text(MODEL)
    (project / "logs").mkdir()
    (project / name).write_text(TRACEBACK)
    done = amplint("explain", name)
    assert (done.status, done.stderr) == (0, "")
    assert "mat1 and mat2 must have the same dtype, but got Float and BFloat16" in done.stdout
    assert "model.py:10 in forward: a finding lies on this line" in done.stdout
    document = json.loads(amplint("explain", name, "--output-format", "json").stdout)
    assert [finding["code"] for finding in document["findings"]] == ["AMP102"]


def test_a_rule_goes_before_a_file(project: Path) -> None:
    (project / "index-write").write_text(TRACEBACK)
    assert amplint("explain", "index-write").stdout.startswith("AMP105 index-write\n")
    assert amplint("explain", "./index-write").stdout.startswith("dtype: ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.log", "cannot read nowhere.log: No such file or directory"),
        ("logs/nowhere", "cannot read logs/nowhere: No such file or directory"),
        (".", "cannot read .: Is a directory"),
        ("empty.txt", "there is nothing in empty.txt: paste the last line of the traceback in quotes"),
        ("other.txt", "no mixed-precision error is known in this text: paste the last line"),
    ],
)
def test_what_cannot_be_explained(project: Path, name: str, message: str) -> None:
    (project / "empty.txt").write_text("\n")
    (project / "other.txt").write_text("Traceback (most recent call last):\n  all is well, and nothing has failed\n")
    done = amplint("explain", name)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"amplint: error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "heading", "prefix"),
    [
        (("AMP1",), "AMP1xx: Operands that disagree", "AMP1"),
        (("amp1x",), "AMP1xx: Operands that disagree", "AMP1"),
        (("AMP3xx",), "AMP3xx: Range and support", "AMP3"),
        (("AMP11x",), "AMP11x", "AMP11"),
        (("range", "and", "support"), "AMP3xx: Range and support", "AMP3"),
        (("Training step",), "AMP4xx: The training step", "AMP4"),
        (("api",), "AMP6xx: API", "AMP6"),
        (("AMP",), "AMPxxx", "AMP"),
    ],
)
def test_a_family_is_listed(project: Path, words: tuple[str, ...], heading: str, prefix: str) -> None:
    wanted = [rule for rule in load_rules() if rule.code.startswith(prefix)]
    done = amplint("explain", *words)
    assert (done.status, done.stderr) == (0, "amplint: amplint explain CODE explains one of them\n")
    title, line, empty, *rows = done.stdout.splitlines()
    assert (title, line, empty) == (heading, "=" * len(heading), "")
    assert [row.split()[:2] for row in rows] == [[rule.code, rule.name] for rule in wanted]
    assert all(rule.summary in row for rule, row in zip(wanted, rows, strict=True))
    family = json.loads(amplint("explain", *words, "--output-format", "json").stdout)["family"]
    assert (family["prefix"], [rule["code"] for rule in family["rules"]]) == (prefix, [rule.code for rule in wanted])


@pytest.mark.parametrize("word", ["AMP7", "A", "AMP10y", "AMP9999"])
def test_no_family(project: Path, word: str) -> None:
    done = amplint("explain", word)
    assert (done.status, done.stdout) == (2, "")
    assert f"unknown rule '{word}'" in done.stderr


def test_what_is_off_by_default_says_so(project: Path) -> None:
    assert amplint("explain", "AMP2").stdout.count("(off by default)") == 1
    assert amplint("rules").stdout.count("(off by default)") == 3
