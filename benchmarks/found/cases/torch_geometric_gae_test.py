"""Predictions go to numpy, which has no bfloat16."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import GAE, GCNConv

    gae = GAE(GCNConv(4, 4))

    def test(z):
        return torch.tensor(gae.test(z, torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0, 3], [4, 2]])))

    return test, (torch.randn(5, 4),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/autoencoder.py",
    line=140,
    code=None,
    scenario="bf16",
    error="BFloat16",
    breaks="`GAE.test` fails for a bfloat16 model.",
    build=build,
    mode="eval-no-grad",
)
