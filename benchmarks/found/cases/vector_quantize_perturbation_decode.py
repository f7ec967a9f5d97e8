"""Codes are computed in float32 from the indices and go into the half projection."""

from found.case import Case


def build():
    import torch
    from torch import nn
    from vector_quantize_pytorch.finite_scalar_perturbation import FSP

    class Decoding(nn.Module):
        """Calls indices_to_codes where a module is called."""

        def __init__(self):
            super().__init__()
            self.quantize = FSP(levels=[4, 4], dim=8)

        def forward(self, indices):
            return self.quantize.indices_to_codes(indices)

    return Decoding(), (torch.randint(0, 16, (1, 4)),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/finite_scalar_perturbation.py",
    line=302,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`FSP` in half precision cannot decode indices where it has a projection.",
    build=build,
    mode="eval-no-grad",
)
