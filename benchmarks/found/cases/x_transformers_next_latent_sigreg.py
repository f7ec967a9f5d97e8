"""The random projections are drawn in float32 whatever the latents are."""

from found.case import Case


def build():
    import torch
    from x_transformers.next_latent_wrapper import NextLatentWrapper

    return NextLatentWrapper.sigreg_loss, (torch.randn(2, 3, 8),), {"num_slices": 4}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/next_latent_wrapper.py",
    line=154,
    code="AMP103",
    scenario="bf16",
    error="scalar type BFloat16 but found Float",
    breaks="`NextLatentWrapper` with `sigreg_loss_weight` above 0 cannot be trained in half precision.",
    build=build,
)
