"""The epsilon is zero in float16, so that small embeddings are divided by zero."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn.models.attract_repel import ARLinkPredictor

    model = ARLinkPredictor(4, 4, num_layers=1)

    def fraction(attract, repel):
        return torch.tensor(model.calculate_r_fraction(attract, repel))

    return fraction, (torch.full((2, 4), 1e-4), torch.full((2, 4), 1e-4)), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/models/attract_repel.py",
    line=145,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="`ARLinkPredictor.calculate_r_fraction` in float16 is NaN for small embeddings.",
    build=build,
    mode="eval-no-grad",
)
