"""The quantisation after the in-place step stays float32, and goes into a half projection."""

from found.case import Case


def build():
    import torch
    from torch import optim
    from vector_quantize_pytorch import VectorQuantize

    quantize = VectorQuantize(
        dim=8,
        codebook_dim=4,
        codebook_size=4,
        rotation_trick=False,
        ema_update=False,
        learnable_codebook=True,
        in_place_codebook_optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    )
    return quantize, (torch.randn(1, 4, 8),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/vector_quantize_pytorch.py",
    line=1411,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`VectorQuantize(in_place_codebook_optimizer=...)` with a projection cannot be trained in half precision.",
    build=build,
)
