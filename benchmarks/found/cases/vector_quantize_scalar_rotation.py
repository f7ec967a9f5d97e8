"""The values are quantised in float32 and rotated back, before they are cast, by a half rotation."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch import FSQ

    return FSQ(levels=[5, 5], orthogonal_rotation=True), (torch.randn(1, 4, 2),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/finite_scalar_quantization.py",
    line=297,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`FSQ(orthogonal_rotation=True)` cannot run in half precision.",
    build=build,
)
