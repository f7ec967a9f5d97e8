"""The quantised values are float32 after a division of integers, the projection is half."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch.finite_scalar_perturbation import FSP

    return FSP(levels=[4, 4], dim=8, quantize_rate=0.5), (torch.randn(1, 4, 8),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/finite_scalar_perturbation.py",
    line=351,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`FSP` with a projection cannot be trained in half precision.",
    build=build,
)
