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
