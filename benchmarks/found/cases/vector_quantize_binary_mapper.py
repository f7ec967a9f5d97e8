"""The straight-through estimate multiplies the codes, made float32, with half logits."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch.binary_mapper import BinaryMapper

    return BinaryMapper(bits=4), (torch.randn(2, 3, 4),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/binary_mapper.py",
    line=174,
    code="AMP103",
    scenario="bf16",
    error="scalar type BFloat16 but found Float",
    breaks="`BinaryMapper` in half precision cannot be trained.",
    build=build,
)
