"""The epsilon is zero in float16, so that a patch unlike its summary gives the logarithm of zero."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import DeepGraphInfomax

    class Loss(torch.nn.Module):
        """Calls loss where a module is called."""

        def __init__(self):
            super().__init__()
            self.model = DeepGraphInfomax(2, torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity())
            with torch.no_grad():
                self.model.weight.copy_(torch.eye(2))

        def forward(self, positive, negative, summary):
            return self.model.loss(positive, negative, summary)

    return Loss(), (torch.tensor([[-20.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1.0, 0.0])), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/deep_graph_infomax.py",
    line=87,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="`DeepGraphInfomax` under autocast in float16 has an infinite loss once a patch does not fit.",
    build=build,
    mode="eval-no-grad",
)
