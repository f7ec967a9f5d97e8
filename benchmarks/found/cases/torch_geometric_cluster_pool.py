"""The one-hot matrix of clusters is made in float32."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn import ClusterPooling

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return ClusterPooling(4, threshold=-1.0), (torch.randn(3, 4), edges, torch.zeros(3, dtype=torch.long)), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/pool/cluster_pool.py",
    line=136,
    code=None,
    scenario="bf16",
    error="dtype",
    breaks="`ClusterPooling` in half precision cannot run.",
    build=build,
)
