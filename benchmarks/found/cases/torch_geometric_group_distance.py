"""Distances between groups by cdist, which has no kernel for 16 bit."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import DiffGroupNorm

    def ratio(x):
        return torch.tensor(DiffGroupNorm.group_distance_ratio(x, torch.tensor([0, 0, 1, 1])))

    return ratio, (torch.randn(4, 3),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/norm/diff_group_norm.py",
    line=112,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="`DiffGroupNorm.group_distance_ratio` cannot be computed in half precision.",
    build=build,
    mode="eval-no-grad",
)
