"""The random projections are drawn in float32 whatever the embeddings are."""

from found.case import Case


def build():
    import torch
    from x_transformers.gpt_lejepa import LatentAutoregressive

    return LatentAutoregressive.sigreg_loss, (torch.randn(2, 3, 8),), {"num_slices": 4}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/gpt_lejepa.py",
    line=59,
    code="AMP103",
    scenario="bf16",
    error="scalar type BFloat16 but found Float",
    breaks="Training `LatentAutoregressive` in half precision fails in its default regularisation.",
    build=build,
)
