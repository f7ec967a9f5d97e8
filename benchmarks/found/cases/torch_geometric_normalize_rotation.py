"""The covariance is taken in 16 bit under autocast, which no eigendecomposition takes."""

import torch
from found.case import Case


def build():
    from torch_geometric.data import Data
    from torch_geometric.transforms import NormalizeRotation

    def rotate(pos):
        return NormalizeRotation()(Data(pos=pos)).pos

    return rotate, (torch.randn(5, 3),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/transforms/normalize_rotation.py",
    line=37,
    code=None,
    scenario="autocast-bf16",
    error="not implemented for",
    breaks="`NormalizeRotation` in a step under autocast fails.",
    build=build,
    mode="eval-no-grad",
)
