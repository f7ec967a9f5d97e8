"""The weight of the moving average comes from the autocast region, the codebook does not."""

import torch
from found.case import Case


def build():
    from torch import nn
    from vector_quantize_pytorch import VectorQuantize

    class Weighted(nn.Module):
        """A codebook whose update is weighted by what a linear layer says, as the parameter allows."""

        def __init__(self):
            super().__init__()
            self.quantize = VectorQuantize(dim=8, codebook_size=4)
            self.rate = nn.Linear(8, 4)

        def forward(self, x):
            weight = self.rate(x.mean(dim=(0, 1))).sigmoid().unsqueeze(0)
            return self.quantize(x, ema_update_weight=weight)[0]

    return Weighted(), (torch.randn(1, 6, 8),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/vector_quantize_pytorch.py",
    line=99,
    code=None,
    scenario="autocast-bf16",
    error="dtype",
    breaks="Training `VectorQuantize` under autocast fails with an `ema_update_weight` that a layer computed.",
    build=build,
)
