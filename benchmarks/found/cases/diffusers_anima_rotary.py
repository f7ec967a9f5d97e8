"""Positions are rounded by autocast, and so the angles at distant ones are others."""

from found.case import Case


def build():
    import torch
    from diffusers.models.condition_embedders.condition_embedder_anima import AnimaRotaryEmbedding

    return AnimaRotaryEmbedding(8), (torch.randn(1, 2, 8), torch.tensor([[401, 403]])), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/condition_embedders/condition_embedder_anima.py",
    line=53,
    code="AMP306",
    scenario="autocast-bf16",
    error="differs from float32",
    breaks="Anima's text conditioning under autocast has the wrong rotary angles at positions beyond 256.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
