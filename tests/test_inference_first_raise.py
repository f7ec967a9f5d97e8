"""Of operations that one operand out of place makes fail, the one that raises first is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from amplint.infer.analysis import analyse
from amplint.infer.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.source import Source


def rows_of(code: str) -> list[int]:
    source = Source(Path("/project/net.py"), code.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    return sorted(facts.span(conflict.node).start.row for conflict in facts.conflicts if conflict.raises)


COMPOSITE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {layer}
        self.last = nn.Linear(8, 8)

    def forward(self, index: torch.Tensor):
        x = torch.zeros(3, 2, 8)
        y = {call}
        return self.last(y)
"""


@pytest.mark.parametrize(
    ("layer", "call"),
    [
        ("nn.Transformer(8, 2, 1, 1, 8)", "self.inner(x, x)"),
        ("nn.Transformer(8, 2, 1, 1, 8)", "self.inner.encoder(x)"),
        ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 1)", "self.inner(x)"),
        ("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8), 1)", "self.inner(x, x)"),
        ("nn.MultiheadAttention(8, 2)", "self.inner(x, x, x)[0]"),
    ],
)
def test_composite_layers_raise_for_their_inputs(layer: str, call: str) -> None:
    code = COMPOSITE.format(layer=layer, call=call)
    assert rows_of(code) == [13]
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"]().to(torch.bfloat16)(torch.arange(3))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")] == [13]


HELPED = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        q = x.float()
        k = self.key(x)
        {first}
        scores = self.scores(q, k)
        return scores

    def scores(self, q, k):
        return torch.matmul(q, k.mT)
"""


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        ("weights = torch.matmul(q, k.mT)", [13]),
        ("weights = torch.matmul(k, k.mT)", [18]),
        ("weights = torch.matmul(q.float(), k.mT)", [13, 18]),
        ("if len(x) > 3: weights = torch.matmul(q, k.mT)", [13, 18]),
        ("weights = self.scores(q, k); torch.matmul(q, k.mT)", [13, 18]),
    ],
)
def test_what_is_only_called_behind_a_failure_of_the_same_operand_is_none_of_its_own(
    first: str, rows: list[int]
) -> None:
    assert rows_of(HELPED.format(first=first)) == rows
