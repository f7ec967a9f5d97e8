"""The epsilon is zero in float16, so that neighbours far apart give the logarithm of zero."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import Node2Vec

    class Loss(torch.nn.Module):
        """The loss of a model of unlike nodes; its walks, made by a compiled package, are not needed for it."""

        def __init__(self):
            super().__init__()
            self.model = Node2Vec.__new__(Node2Vec)
            torch.nn.Module.__init__(self.model)
            self.model.embedding_dim, self.model.EPS = 4, 1e-15
            self.model.embedding = torch.nn.Embedding(2, 4)
            with torch.no_grad():
                self.model.embedding.weight[0] = 2.5
                self.model.embedding.weight[1] = -2.5

        def forward(self):
            walks = torch.tensor([[0, 1]])
            return self.model.loss(walks, walks)

    return Loss(), (), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/node2vec.py",
    line=146,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="Node2Vec in float16 has an infinite loss once nodes of one walk are far apart.",
    build=build,
    mode="eval-no-grad",
)
