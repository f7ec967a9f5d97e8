"""The identity of the series is made in float32."""

import torch
from found.case import Case


def build():
    from torch_geometric.data import Data
    from torch_geometric.transforms import GDC

    diffusion = GDC(
        diffusion_kwargs={"method": "coeff", "coeffs": [0.5, 0.3, 0.2]},
        sparsification_kwargs={"method": "threshold", "eps": 0.01},
    )

    def diffuse(weight):
        edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        return diffusion(Data(edge_index=edges, edge_attr=weight, num_nodes=3)).edge_attr

    return diffuse, (torch.rand(4),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/transforms/gdc.py",
    line=261,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="`GDC` with coefficients cannot take half edge weights.",
    build=build,
    mode="eval-no-grad",
)
