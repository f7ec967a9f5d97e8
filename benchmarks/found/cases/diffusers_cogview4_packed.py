"""The packed attention writes its half result back into the float32 states that it was given."""

from found.case import Case


def build():
    import torch
    from diffusers.models.attention_processor import Attention
    from diffusers.models.transformers.transformer_cogview4 import CogView4TrainingAttnProcessor

    attention = Attention(
        query_dim=8,
        heads=2,
        dim_head=4,
        bias=True,
        qk_norm="layer_norm",
        elementwise_affine=False,
        processor=CogView4TrainingAttnProcessor(),
    )
    ones = torch.ones(2, 2, dtype=torch.int32)
    rotary = [(torch.ones(2, 4), torch.zeros(2, 4)) for _ in range(2)]
    return (
        attention,
        (torch.randn(2, 2, 8), torch.randn(2, 2, 8)),
        {
            "text_attn_mask": ones,
            "latent_attn_mask": ones,
            "batch_flag": torch.tensor([0, 0]),
            "image_rotary_emb": rotary,
        },
    )


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/transformers/transformer_cogview4.py",
    line=445,
    code="AMP105",
    scenario="autocast-bf16",
    error="Index put requires the source and destination dtypes match",
    breaks="CogView4's training with packed samples fails under autocast.",
    build=build,
    imports=("diffusers.loaders.peft",),
    mode="eval-no-grad",
)
