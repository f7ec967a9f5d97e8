"""The latents are a one-hot in float32, which the next linear layer does not take."""

from found.case import Case


def build():
    import torch
    from x_transformers.free_transformer import FreeTransformer

    model = FreeTransformer(
        num_tokens=8, dim=16, dec_head_depth=1, dec_tail_depth=1, max_seq_len=8, latent_bits=2, heads=2, attn_dim_head=8
    )
    return model, (torch.randint(0, 8, (1, 8)),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/free_transformer.py",
    line=390,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`FreeTransformer` in half precision cannot run at all: its one-hot latents are float32.",
    build=build,
    mode="eval-no-grad",
)
