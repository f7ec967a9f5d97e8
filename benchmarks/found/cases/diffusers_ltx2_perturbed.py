"""The attention's result is cast to the normalised query's float32, the value is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from diffusers.models.transformers.transformer_ltx2 import LTX2Attention, LTX2PerturbedAttnProcessor

    attention = LTX2Attention(8, heads=2, kv_heads=2, dim_head=4, processor=LTX2PerturbedAttnProcessor())
    return attention, (torch.randn(2, 3, 8),), {"perturbation_mask": torch.tensor([0.0, 1.0])[:, None, None]}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/transformers/transformer_ltx2.py",
    line=316,
    code="AMP104",
    scenario="autocast-bf16",
    error="dtype",
    breaks="LTX-2 with perturbed attention (spatio-temporal guidance) fails under autocast.",
    build=build,
    imports=("diffusers.loaders.peft",),
    mode="eval-no-grad",
)
