"""The epsilon is zero in float16, and the gradient of the root at zero is infinite."""

import torch
from found.case import Case


def build():
    from torchmetrics.functional.image.dists import L2pooling

    class Pooled(torch.nn.Module):
        """Pools an image that is learned."""

        def __init__(self):
            super().__init__()
            self.image = torch.nn.Parameter(torch.zeros(1, 3, 8, 8))
            self.pooling = L2pooling(channels=3)

        def forward(self):
            return self.pooling(self.image)

    return Pooled(), (), {}


CASE = Case(
    package="torchmetrics",
    release="1.9.0",
    path="torchmetrics/functional/image/dists.py",
    line=75,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan in a gradient",
    breaks="DISTS as a loss under autocast in float16 gives NaN gradients where an activation is zero.",
    build=build,
)
