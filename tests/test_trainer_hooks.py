"""Lightning's trainer runs the steps of a module under autocast, and its hooks outside of it.

Each hook that is named here was asked for autocast in a run of ``Trainer(precision="bf16-mixed")``, with Lightning
1.9.5 and 2.6; Lightning itself is no dependency of the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import {package} as pl
import torch
import torch.nn.functional as F

class Model(pl.{base}):
    def {name}(self, outputs, target):
        return self.report(outputs.sigmoid(), target)

    def report(self, score, target):
        return F.binary_cross_entropy(score, target)
"""
HOOKS = ("on_validation_epoch_end", "on_train_batch_start", "validation_epoch_end", "test_step_end", "on_fit_start")
STEPS = (
    "on_refine_end",
    "training_step",
    "validation_step",
    "test_step",
    "predict_step",
    "forward",
    "on_before_backward",
)


@pytest.mark.parametrize(
    ("package", "base", "name", "told"),
    [
        *(("pytorch_lightning", "LightningModule", name, False) for name in HOOKS),
        *(("lightning.pytorch", "LightningModule", name, True) for name in STEPS),
        ("lightning", "LightningModule", "on_train_epoch_end", False),
        ("lightning.pytorch", "Callback", "on_validation_end", False),
        ("torch.nn", "Module", "on_validation_epoch_end", True),
    ],
)
def test_only_steps_run_under_autocast(tmp_path: Path, package: str, base: str, name: str, told: bool) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODULE.format(package=package, base=base, name=name))
    result = check_file(path, judging_options(Config(), load_rules()))
    assert [finding.code for finding in result.findings] == ["AMP304"] * told


def test_what_a_step_calls_too_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = MODULE.format(package="lightning", base="LightningModule", name="on_validation_epoch_end")
    step = "\n    def training_step(self, outputs, target):\n        return self.report(outputs.sigmoid(), target)\n"
    path.write_text(text + step)
    result = check_file(path, judging_options(Config(), load_rules()))
    assert [finding.code for finding in result.findings] == ["AMP304"]
