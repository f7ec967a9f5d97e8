"""What data sets of tensors and their loaders give has the dtypes of the tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in
from torch.utils import data

from amplint.infer.torch_model.datasets import _COLLATE

CODE = """\
import torch
from torch import nn
from torch.utils import data
from torch.utils.data import DataLoader, TensorDataset


def gather(items):
    return [torch.stack(parts).bfloat16() for parts in zip(*items)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

    def fit(self, x: torch.Tensor, labels: torch.Tensor):
        wide = torch.ones(8, 8, device=x.device)
        {made}
        for {batch} in {given}:
            out = self(batch)
        return out, self.last(wide)
"""
LOADER = "given = DataLoader(TensorDataset(wide, labels), batch_size=4)"


@pytest.mark.parametrize(
    ("made", "batch", "given", "told"),
    [
        (LOADER, "batch, label", "given", [18]),
        (LOADER, "i, (batch, label)", "enumerate(given)", [18]),
        (LOADER, "batch, _", "[next(iter(given))]", [18]),
        ("given = data.DataLoader(dataset=data.TensorDataset(wide))", "(batch,)", "given", [18]),
        ("given = DataLoader(TensorDataset(labels, x))", "_, batch", "given", [25]),
        ("given = DataLoader(TensorDataset(wide, labels), collate_fn=gather)", "batch, label", "given", [25]),
        ("given = DataLoader(TensorDataset(wide, labels), 2, False, None, None, 0, gather)", "batch, _", "given", [25]),
        ("given = TensorDataset(wide, labels)", "batch, label", "[given[0]]", [18]),
        ("given = TensorDataset(wide, labels)", "batch, label", "[given[:]]", [18]),
        ("a, b = data.random_split(TensorDataset(wide, labels), [6, 2])", "batch, _", "DataLoader(b)", [18]),
        ("given = data.Subset(TensorDataset(wide, labels), [0, 1])", "batch, _", "DataLoader(given)", [18]),
        (LOADER, "batch, label", "given if isinstance(given, data.DataLoader) else [(x, x)]", [18]),
        (LOADER, "batch, label", "[(x, x)] if isinstance(given, (tuple, list)) else given", [18]),
    ],
)
def test_a_batch_has_the_dtype_of_the_tensor(made: str, batch: str, given: str, told: list[int]) -> None:
    code = CODE.format(made=made, batch=batch, given=given)
    assert told_in(code) == told
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"]().to(torch.bfloat16).fit(torch.ones(8, 8, dtype=torch.bfloat16), torch.arange(8))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")][-1:] == told


def test_the_parameters_stand_where_torch_has_them() -> None:
    code = data.DataLoader.__init__.__code__
    assert code.co_varnames[1] == "dataset"
    assert code.co_varnames[1 + _COLLATE] == "collate_fn"
    assert data.Subset.__init__.__code__.co_varnames[1] == data.random_split.__code__.co_varnames[0] == "dataset"
