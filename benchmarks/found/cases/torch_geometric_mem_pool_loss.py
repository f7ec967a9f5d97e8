"""The epsilon is zero in float16, so that an assignment of zero gives its logarithm."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn import MemPooling

    return MemPooling.kl_loss, (torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/pool/mem_pool.py",
    line=79,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="`MemPooling.kl_loss` in float16 is NaN once a node isn't assigned to a cluster at all.",
    build=build,
    mode="eval-no-grad",
)
