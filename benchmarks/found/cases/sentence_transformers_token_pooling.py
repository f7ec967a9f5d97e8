"""The product is bfloat16 under autocast, which numpy has not."""

from found.case import Case


def build():
    import torch
    from sentence_transformers.multi_vector_encoder.modules.token_pooling import HierarchicalTokenPooling

    return HierarchicalTokenPooling(pool_factor=2).pool_one, (torch.randn(9, 8),), {}


CASE = Case(
    package="sentence-transformers",
    release="6.2.0",
    path="sentence_transformers/multi_vector_encoder/modules/token_pooling.py",
    line=233,
    code=None,
    scenario="autocast-bf16",
    error="BFloat16",
    breaks="Hierarchical token pooling of a multi-vector encoder fails under autocast in bfloat16.",
    build=build,
    imports=("sentence_transformers",),
    mode="eval-no-grad",
)
