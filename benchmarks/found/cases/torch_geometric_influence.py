"""The hops are made in float32."""

import torch
from found.case import Case


def build():
    from torch_geometric.utils.influence import influence_weighted_receptive_field

    def breadth(influence):
        return torch.tensor(influence_weighted_receptive_field(influence))

    return breadth, (torch.rand(3, 3),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/utils/influence.py",
    line=189,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="The receptive field of a model in half precision cannot be computed from its influence matrix.",
    build=build,
    mode="eval-no-grad",
)
