"""The squares overflow in float16 beyond 256, and what is multiplied by their inverse root is zero."""

from found.case import Case


def build():
    import torch
    from torch import nn
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention

    class Norm(nn.Module):
        """The normalisation of the keys alone."""

        def __init__(self):
            super().__init__()
            self.attention = LSHSelfAttention(
                ReformerConfig(hidden_size=8, num_attention_heads=2, attention_head_size=4)
            )

        def forward(self, vectors):
            return self.attention._len_and_dim_norm(vectors, 2.0)

    return Norm(), (1000 * torch.randn(1, 2, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/reformer/modeling_reformer.py",
    line=1064,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="Reformer's LSH attention in float16 loses keys of some hundreds.",
    build=build,
    mode="eval-no-grad",
)
