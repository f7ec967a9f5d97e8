"""The output is initialised in float32, and makes the input of a linear layer float32."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn.aggr import EquilibriumAggregation

    return (
        EquilibriumAggregation(3, 2, num_layers=[4], grad_iter=1),
        (torch.randn(4, 3), torch.tensor([0, 0, 1, 1])),
        {},
    )


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/aggr/equilibrium.py",
    line=38,
    code="AMP102",
    scenario="bf16",
    error="dtype",
    breaks="`EquilibriumAggregation` in half precision cannot run.",
    build=build,
)
