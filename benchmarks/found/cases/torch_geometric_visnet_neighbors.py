"""VIS"""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn.models import ViSNet

    model = ViSNet(hidden_channels=8, num_heads=2, num_layers=1, num_rbf=4, max_z=10)
    return model, (torch.tensor([1, 2, 3]), torch.randn(3, 3), torch.zeros(3, dtype=torch.long)), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/visnet.py",
    line=404,
    code="AMP104",
    scenario="bf16",
    error="dtype",
    breaks="VIS",
    build=build,
    mode="eval-no-grad",
)
