"""Codes are float32 from a division of integers, the rotation that they are multiplied with is half."""

from found.case import Case


def build():
    import torch
    from torch import nn
    from vector_quantize_pytorch import FSQ

    class Decoding(nn.Module):
        """Calls indices_to_codes where a module is called."""

        def __init__(self):
            super().__init__()
            self.quantize = FSQ(levels=[5, 5], orthogonal_rotation=True)

        def forward(self, indices):
            return self.quantize.indices_to_codes(indices)

    return Decoding(), (torch.randint(0, 25, (1, 4)),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/finite_scalar_quantization.py",
    line=235,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`FSQ(orthogonal_rotation=True)` in half precision cannot decode indices.",
    build=build,
    mode="eval-no-grad",
)
