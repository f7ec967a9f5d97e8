"""What raises in another file for what is handed to it is told of each call, and hides what runs behind each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = """from torch import nn


class Encoder(nn.Module):
    def __init__(self, *, width, **more):
        super().__init__()
        self.enter = nn.Linear(width, width)

    def forward(self, x):
        return self.enter(x)
"""
MODELS = """from torch import nn

from brought_package.layers import Encoder


class Plain(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.encoder = Encoder(**settings)

    def forward(self, x):
        return self.encoder(x.float())  # told


class Other(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.encoder = Encoder(**settings)
        self.more = nn.Linear(4, 4)

    def forward(self, x):
        encoded = self.encoder(x.float())  # told
        return encoded, self.more(x.float())


class Right(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.encoder = Encoder(**settings)
        self.more = nn.Linear(4, 4)

    def forward(self, x):
        encoded = self.encoder(x)
        return encoded, self.more(x.float())  # told
"""


def made(folder: Path) -> Path:
    package = folder / "brought_package"
    package.mkdir()
    for name, text in {"__init__": "", "layers": LAYERS, "models": MODELS}.items():
        (package / f"{name}.py").write_text(text)
    return package / "models.py"


TOLD = [row for row, line in enumerate(MODELS.splitlines(), 1) if line.endswith("# told")]


def test_each_call_is_told_and_hides_what_runs_behind_it(tmp_path: Path) -> None:
    models = made(tmp_path)
    options = judging_options(Config(), load_rules(), scenario=["fp16"])
    found = check_file(Source(models, models.read_bytes()), options).findings
    assert [finding.span.start.row for finding in found] == TOLD


def test_torch_raises_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = made(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace: dict[str, type[torch.nn.Module]] = {}
    exec(compile(MODELS, str(models), "exec"), namespace)
    for name, row in zip(("Plain", "Other", "Right"), TOLD, strict=True):
        model = namespace[name]({"width": 4}).half()
        with pytest.raises(RuntimeError, match="dtype") as raised:
            model(torch.rand(2, 4, dtype=torch.half))
        assert row in [entry.lineno + 1 for entry in raised.traceback if str(entry.path) == str(models)]
