"""The ones of the denominator are made in float32."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn.attention import SGFormerAttention

    return SGFormerAttention(4, heads=1, head_channels=4), (torch.randn(1, 3, 4),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/attention/sgformer.py",
    line=81,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="`SGFormerAttention` in half precision cannot run.",
    build=build,
)
