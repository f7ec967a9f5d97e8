"""The memory is a float32 buffer, what is written into it is in the autocast dtype."""

import torch
from found.case import Case


def build():
    from torch_geometric.nn import TGNMemory
    from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator

    class Updating(torch.nn.Module):
        """Calls update_state where a module is called."""

        def __init__(self):
            super().__init__()
            self.memory = TGNMemory(4, 2, 4, 2, IdentityMessage(2, 4, 2), LastAggregator())

        def forward(self, message):
            self.memory.update_state(torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), message)
            return message

    return Updating(), (torch.randn(1, 2),), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/tgn.py",
    line=127,
    code="AMP105",
    scenario="autocast-bf16",
    error="Index put requires the source and destination dtypes match",
    breaks="`TGNMemory` cannot be updated under autocast.",
    build=build,
    mode="eval-no-grad",
)
