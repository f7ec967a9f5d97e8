"""The codebook is a float32 buffer by a cast, the projection was built in bfloat16."""

from found.case import Case


def build():
    import torch
    from torch import nn
    from vector_quantize_pytorch import ResidualLFQ

    class Decoding(nn.Module):
        """Calls get_output_from_indices where a module is called."""

        def __init__(self):
            super().__init__()
            self.quantize = ResidualLFQ(dim=8, codebook_size=4, num_quantizers=2)

        def forward(self, indices):
            return self.quantize.get_output_from_indices(indices)

    return Decoding(), (torch.randint(0, 4, (1, 4, 2)),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/residual_lfq.py",
    line=136,
    code="AMP104",
    scenario="bf16-mixed-params",
    error="same dtype",
    breaks="`ResidualLFQ` built in bfloat16 cannot decode indices where it has a projection.",
    build=build,
    mode="eval-no-grad",
)
