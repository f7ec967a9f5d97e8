"""The epsilon is zero in float16, so that an alike negative pair gives the logarithm of zero."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import MetaPath2Vec

    class Loss(torch.nn.Module):
        """The loss of a model of alike nodes; its walks, made by a compiled package, are not needed for it."""

        def __init__(self):
            super().__init__()
            path = [("a", "to", "a")]
            edges = {path[0]: torch.tensor([[0, 1], [1, 0]])}
            self.model = MetaPath2Vec(edges, 4, path, walk_length=1, context_size=2, num_nodes_dict={"a": 2})
            with torch.no_grad():
                self.model.embedding.weight.fill_(2.0)
                self.model.embedding.weight[1] *= 1

        def forward(self):
            return self.model.loss(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))

    return Loss(), (), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/metapath2vec.py",
    line=225,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="`MetaPath2Vec` in float16 has an infinite loss once a negative pair is alike.",
    build=build,
    mode="eval-no-grad",
)
