"""Radial features are made against float32 steps, the layer that reads them is half."""

from found.case import Case


def build():
    import torch
    from torch_geometric.llm.models import protein_mpnn

    def complete(x, k, batch, loop):
        """In place of the neighbours by a compiled package."""
        return torch.cartesian_prod(torch.arange(len(x)), torch.arange(len(x))).t()

    protein_mpnn.knn_graph = complete
    model = protein_mpnn.ProteinMPNN(hidden_dim=8, num_encoder_layers=1, num_decoder_layers=1, num_neighbors=3)
    ones, zeros = torch.ones(3), torch.zeros(3, dtype=torch.long)
    return model, (torch.randn(3, 4, 3), zeros, ones, ones, torch.arange(3), zeros, zeros), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/llm/models/protein_mpnn.py",
    line=295,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`ProteinMPNN` in half precision cannot run.",
    build=build,
    mode="eval-no-grad",
)
