"""Which handlers take what torch raises for a dtype, and so lead on to what comes behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

CODE = """\
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        wide = torch.ones(8, 8, device=x.device)
        try:
            y = self.first(wide)
        except {taken}:
            y = x
        return self.last(torch.zeros(8, 8, device=x.device)) + y
"""


@pytest.mark.parametrize(
    ("taken", "goes_on"),
    [
        ("torch.linalg.LinAlgError", False),
        ("np.linalg.LinAlgError", False),
        ("(ValueError, KeyError)", False),
        ("ImportError", False),
        ("RuntimeError", True),
        ("(ValueError, RuntimeError)", True),
        ("Exception", True),
        ("torch.cuda.OutOfMemoryError", True),
    ],
)
def test_only_what_takes_runtime_errors_goes_on(taken: str, goes_on: bool) -> None:
    code = CODE.format(taken=taken)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"]().to(torch.bfloat16)(torch.ones(8, 8, dtype=torch.bfloat16))
    if taken != "torch.cuda.OutOfMemoryError":
        assert [e.lineno + 1 for e in caught.traceback if str(e.path).endswith("net.py")] == [18 if goes_on else 15]
    assert (18 in told_in(code)) is goes_on
