"""The epsilon is zero in float16, so that a token of zeros is divided by zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.attention_processor import Attention
    from diffusers.models.transformers.transformer_sana_video import SanaLinearAttnProcessor3_0

    attention = Attention(query_dim=8, heads=2, dim_head=4, processor=SanaLinearAttnProcessor3_0())
    tokens = torch.randn(1, 4, 8)
    tokens[:, 0] = 0
    rotary = torch.ones(1, 4, 1, 4), torch.zeros(1, 4, 1, 4)
    return attention, (tokens,), {"rotary_emb": rotary}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/transformers/transformer_sana_video.py",
    line=159,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="Sana-Video's linear attention under autocast in float16 gives NaN where a query is nowhere positive.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
