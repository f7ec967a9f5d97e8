"""The residual convolution is in the autocast dtype, what it is interpolated with is float32."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch.hierarchical_vq import HierarchicalVQ

    return HierarchicalVQ(dim=4, codebook_size=8, scales=(1, 4), kmeans_init=False), (torch.randn(1, 4, 4),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/hierarchical_vq.py",
    line=39,
    code="AMP104",
    scenario="autocast-bf16",
    error="dtype",
    breaks="`HierarchicalVQ` cannot run under autocast.",
    build=build,
    mode="eval-no-grad",
)
