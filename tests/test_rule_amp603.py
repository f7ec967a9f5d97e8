"""AMP603: a region under what ``torch.cuda`` answered is for CUDA on purpose, however torch is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP603")
CODE = """
def build(model, dtype):
    count = {answer}
    if count == 0:
        return model, model.device, None
    return model, model.device, torch.autocast("cuda", dtype=dtype)
"""


@pytest.mark.parametrize(
    ("imports", "answer", "found"),
    [
        ("import torch", "torch.cuda.device_count()", 0),
        ("import torch\nimport torch as th", "th.cuda.device_count()", 0),
        ("import torch\nfrom torch import cuda", "cuda.device_count()", 0),
        ("import torch\nimport gpus as cuda", "cuda.device_count()", 1),
    ],
)
def test_a_region_under_an_answer_of_cuda(imports: str, answer: str, found: int) -> None:
    source = Source(Path("/project/model.py"), f"{imports}\n{CODE.format(answer=answer)}".encode())
    assert len(check_file(source, Options(RULES)).findings) == found


LOOP = """
import torch
from loops import Engine, Trainer


class Clicks:
    def __call__(self, engine: {annotation}, x: torch.Tensor):
        x = x.to(engine.device)
        if {test}:
            with torch.autocast("cuda"):
                return {run}
        return engine.run(x)
"""


@pytest.mark.parametrize(
    ("annotation", "test", "run", "found"),
    [
        ("Engine", "engine.amp", "engine.run(x, engine.network)", 0),
        ("Engine | Trainer", "engine.amp", "engine.run(x, engine.network)", 0),
        ("Clicks", "engine.amp", "engine.run(x, engine.network)", 1),
        ("Engine", "self.amp", "engine.run(x, engine.network)", 1),
        ("Engine", "engine.amp", "self.run(x)", 1),
    ],
)
def test_an_option_of_an_object_of_another_class(annotation: str, test: str, run: str, found: int) -> None:
    code = LOOP.format(annotation=annotation, test=test, run=run)
    source = Source(Path("/project/clicks.py"), code.encode())
    assert len(check_file(source, Options(RULES)).findings) == found
    assert len(check_file(source, Options(RULES, pedantic=True)).findings) == 1


OPTION = """
import torch


class Evaluator:
    def __init__(self, model, device, amp):
        self.model, self.device, self.amp = model.to(device), device, amp

    def __call__(self, x, y=None):
{body}
        return y
"""
REGION = """
        if {test}:
            with torch.autocast("cuda"):
                y = self.model(x)
"""
PLAIN = """
        else:
            {otherwise}
"""
EARLY = """
        if self.amp:
            with torch.autocast("cuda"):
                return self.model(x)
        {otherwise}
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (REGION.format(test="self.amp") + PLAIN.format(otherwise="y = self.model(x)"), 0),
        (REGION.format(test="self.amp and x.ndim > 1") + PLAIN.format(otherwise="y = self.model(x); y.sum()"), 0),
        (EARLY.format(otherwise="return self.model(x)"), 0),
        (EARLY.format(otherwise="return x"), 1),
        (REGION.format(test="self.amp"), 1),
        (REGION.format(test="self.amp") + PLAIN.format(otherwise="y = self.model(x.double())"), 1),
        (REGION.format(test="self.device != 'mps'") + PLAIN.format(otherwise="y = self.model(x)"), 1),
    ],
)
def test_an_option_whose_other_branch_runs_the_same(body: str, found: int) -> None:
    source = Source(Path("/project/evaluator.py"), OPTION.format(body=body).encode())
    assert len(check_file(source, Options(RULES)).findings) == found
    assert len(check_file(source, Options(RULES, pedantic=True)).findings) == 1
