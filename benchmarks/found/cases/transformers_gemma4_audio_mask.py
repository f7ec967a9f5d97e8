"""Masked attention scores get -1e9, which float16 cannot hold; the cast to float32 before is undone by autocast."""

from found.case import Case


def build():
    import torch
    from transformers.models.gemma4.modeling_gemma4 import Gemma4AudioAttention, Gemma4AudioConfig

    config = Gemma4AudioConfig(
        hidden_size=8,
        num_attention_heads=2,
        attention_chunk_size=2,
        attention_context_left=3,
        attention_context_right=0,
    )
    mask = torch.zeros(1, 1, 2, 2, 4, dtype=torch.bool)
    mask[..., 0] = True
    return Gemma4AudioAttention(config, 0), (torch.randn(1, 4, 8), torch.randn(3, 8)), {"attention_mask": mask}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/gemma4/modeling_gemma4.py",
    line=351,
    code="AMP301",
    scenario="autocast-fp16",
    error="overflow",
    breaks="Gemma 4's audio encoder cannot run under autocast in float16 with a mask.",
    build=build,
    mode="eval-no-grad",
)
