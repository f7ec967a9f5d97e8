"""The epsilon is zero in float16, so that a pair far apart gives the logarithm of zero."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import GAE

    class Loss(torch.nn.Module):
        """Calls recon_loss where a module is called."""

        def __init__(self):
            super().__init__()
            self.gae = GAE(torch.nn.Identity())

        def forward(self, z):
            return self.gae.recon_loss(z, torch.tensor([[0], [1]]), torch.tensor([[1], [2]]))

    return Loss(), (torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 1.0]]),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/autoencoder.py",
    line=106,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="`GAE.recon_loss` in float16 is infinite once an edge is held impossible.",
    build=build,
    mode="eval-no-grad",
)
