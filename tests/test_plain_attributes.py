"""What a module keeps that is no parameter and no buffer: ``.half()`` leaves it as it was given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

CODE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, given: torch.Tensor):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        {kept}

    def forward(self, x: torch.Tensor):
        wide = torch.ones(4, 4, device=x.device)
        return torch.matmul(self.kept, wide)
"""


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("self.kept = given", []),
        ("self.kept = given.reshape(4, 4).contiguous()", []),
        ("self.register_buffer('kept', given)", [13]),
        ("self.kept = nn.Parameter(given)", [13]),
    ],
)
def test_only_parameters_and_buffers_are_converted(kept: str, told: list[int]) -> None:
    code = CODE.format(kept=kept)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net, x = namespace["Net"](torch.eye(4)).half(), torch.ones(4, 4).half()
    if told:
        with pytest.raises(RuntimeError, match="dtype"):
            net(x)
    else:
        assert net(x).dtype is torch.float32
    assert told_in(code) == told


ADDED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, a):
        {added}
        return torch.matmul(a, self.layer(x))
"""


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("a += torch.eye(4, device=x.device)", []),
        ("a = a + torch.eye(4, device=x.device)", [12]),
        ("a @= torch.eye(4, device=x.device)", [11]),
    ],
)
def test_what_a_tensor_is_added_to_keeps_its_dtype(added: str, told: list[int]) -> None:
    code = ADDED.format(added=added)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net, x = namespace["Net"]().half(), torch.ones(4, 4).half()
    if told:
        with pytest.raises(RuntimeError, match="dtype"):
            net(x, x)
    else:
        assert net(x, x).dtype is torch.float16
    assert told_in(code) == told
