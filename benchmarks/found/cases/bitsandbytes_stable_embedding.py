"""The embedding is cast to the default dtype, the layer norm after it is half."""

from found.case import Case


def build():
    import torch
    from bitsandbytes.nn import StableEmbedding

    return StableEmbedding(8, 4), (torch.tensor([[1, 2]]),), {}


CASE = Case(
    package="bitsandbytes",
    release="0.50.2",
    path="bitsandbytes/nn/modules.py",
    line=131,
    code="AMP104",
    scenario="bf16",
    error="scalar type",
    breaks="`StableEmbedding` cannot be used in half precision.",
    build=build,
)
