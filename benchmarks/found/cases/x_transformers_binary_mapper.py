"""The straight-through estimate multiplies the codes, made float32, with half logits."""

from found.case import Case


def build():
    import torch
    from x_transformers.free_transformer import BinaryMapper

    return BinaryMapper(bits=4), (torch.randn(2, 3, 4),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/free_transformer.py",
    line=122,
    code="AMP103",
    scenario="bf16",
    error="scalar type BFloat16 but found Float",
    breaks="`FreeTransformer` in half precision cannot be trained.",
    build=build,
)
