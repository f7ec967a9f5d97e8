"""The epsilon is zero in float16, so that a cluster without edges is divided by zero."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn import DMoNPooling

    pool = DMoNPooling(2, k=2, dropout=0.0)
    with torch.no_grad():
        pool.mlp.lins[0].weight.copy_(20 * torch.eye(2))
    nodes = torch.tensor([[[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]]])
    adjacency = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2))[None]
    return pool, (nodes, adjacency), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/dense/dmon_pool.py",
    line=157,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="`DMoNPooling` under autocast in float16 gives NaN for clusters without edges to others.",
    build=build,
    mode="eval-no-grad",
)
