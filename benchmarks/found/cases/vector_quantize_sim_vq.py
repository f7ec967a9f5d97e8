"""Distances to the codebook by cdist, which has no kernel for 16 bit."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch import SimVQ

    return SimVQ(dim=8, codebook_size=4), (torch.randn(1, 3, 8),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/sim_vq.py",
    line=112,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="`SimVQ` cannot run in half precision.",
    build=build,
)
