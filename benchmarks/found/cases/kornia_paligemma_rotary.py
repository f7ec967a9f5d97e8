"""Positions are rounded by autocast, and so the angles at distant ones are others."""

from found.case import Case


def build():
    import torch
    from kornia.models.paligemma.modeling_paligemma import GemmaRotaryEmbedding

    return GemmaRotaryEmbedding(8), (torch.randn(1, 2, 8), torch.tensor([[2001, 1999]])), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/models/paligemma/modeling_paligemma.py",
    line=92,
    code="AMP306",
    scenario="autocast-bf16",
    error="differs from float32",
    breaks="PaliGemma under autocast has the wrong rotary angles at positions beyond 256.",
    build=build,
    mode="eval-no-grad",
)
