"""The cutoff makes the attention float32, and the half projection after it cannot read the message."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn.models.visnet import ViS_MP

    layer = ViS_MP(2, 8, cutoff=5.0, vecnorm_type=None, trainable_vecnorm=False)
    edges = torch.tensor([[0, 1], [1, 0]])
    return (
        layer,
        (torch.randn(2, 8), torch.randn(2, 3, 8), edges, torch.rand(2), torch.randn(2, 8), torch.randn(2, 3)),
        {},
    )


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/visnet.py",
    line=629,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`ViSNet` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
