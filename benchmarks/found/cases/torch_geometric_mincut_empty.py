"""The epsilon is zero in float16, so that a cluster without edges is divided by zero."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn import dense_mincut_pool

    logits = torch.tensor([[[40.0, -40.0], [40.0, -40.0], [-40.0, 40.0], [-40.0, 40.0]]])
    adjacency = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2))[None]
    return dense_mincut_pool, (torch.randn(1, 4, 3), adjacency, logits), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/dense/mincut_pool.py",
    line=103,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="`dense_mincut_pool` under autocast in float16 gives NaN for clusters without edges to others.",
    build=build,
    mode="eval-no-grad",
)
