"""``benchmarks/mutants --verify`` on a library of ours: what is broken is confirmed, not what its label says alone."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOY = """\
import hashlib
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.proj(x)


class Broken(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.proj(x.float())


class Secret(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        if hashlib.sha256(str(key).encode()).hexdigest()[:8] != "0badcafe":
            raise ValueError("no")

    def forward(self, x):
        return self.proj(x)
"""
CAST, SAME = ".float()", ""


def _row(target: str, place: tuple[int, int], text: str, *, kind: str = "module") -> str:
    """A label that says that an insertion raises in float16 and bfloat16."""
    raises = {"label": "raises"}
    return json.dumps(
        {
            "library": "toy",
            "release": "1.0",
            "file": "toy/gate.py",
            "sha256": hashlib.sha256(TOY.encode()).hexdigest(),
            "target": f"toy.gate.{target}",
            "kind": kind,
            "operator": "float-before-layer",
            "edits": [[*place, *place, text]],
            "labels": {"fp16": raises, "bf16": raises, "autocast-fp16": {"label": "harmless"}},
        }
    )


@pytest.fixture
def said(tmp_path: Path) -> str:
    """What the command prints of both halves, which hold the same rows."""
    site = tmp_path / "site"
    (site / "toy").mkdir(parents=True)
    (site / "toy" / "__init__.py").write_text("")
    (site / "toy" / "gate.py").write_text(TOY)
    (site / "toy-1.0.dist-info").mkdir()
    (site / "toy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    rows = [
        _row("Gate", (12, 26), CAST),
        _row("Gate", (12, 25), SAME),
        _row("Broken", (17, 8), SAME),
        _row("Secret", (32, 26), CAST),
        _row("Gate", (12, 26), CAST, kind="training"),
    ]
    for half in ("learned", "kept"):
        (tmp_path / "labels" / half).mkdir(parents=True)
        (tmp_path / "labels" / half / "toy.jsonl").write_text("\n".join(rows) + "\n")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/mutants"), "--verify", "--labels", str(tmp_path / "labels")],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_confirmed(said: str) -> None:
    learned, _, kept = said.partition("kept: ")
    for half in (learned, kept):
        [counts] = [line.split() for line in half.splitlines() if line.startswith("  all ")]
        assert counts == ["all", "1", "0", "1", "1", "0"]  # confirmed; the edit that changes nothing; broken before
        assert "confirmed in every scenario: 33.3%" in half
        assert "1 left out: its class is not built from its signature alone" in half
    assert "toy.gate.Gate fp16,bf16: confirmed" in learned
    assert "gate" not in kept.lower()
