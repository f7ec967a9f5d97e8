"""The epsilon is zero in float16, so that a token of zeros is divided by zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.attention_processor import Attention, PAGCFGSanaLinearAttnProcessor2_0

    attention = Attention(query_dim=8, heads=2, dim_head=4, processor=PAGCFGSanaLinearAttnProcessor2_0())
    tokens = torch.randn(3, 4, 8)
    tokens[:, 0] = 0
    return attention, (tokens,), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/attention_processor.py",
    line=5427,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="Sana with perturbed guidance gives NaN under autocast in float16 where a query is nowhere positive.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
