"""The attention's result is cast to the normalised query's float32, the value is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from diffusers.models.transformers.transformer_sana_wm_refiner import (
        SanaWMLTX2Attention,
        SanaWMLTX2PerturbedAttnProcessor,
    )

    attention = SanaWMLTX2Attention(8, heads=2, kv_heads=2, dim_head=4, processor=SanaWMLTX2PerturbedAttnProcessor())
    return attention, (torch.randn(2, 3, 8),), {"perturbation_mask": torch.tensor([0.0, 1.0])[:, None, None]}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/transformers/transformer_sana_wm_refiner.py",
    line=301,
    code="AMP104",
    scenario="autocast-bf16",
    error="dtype",
    breaks="Sana-WM's refiner with perturbed attention fails under autocast.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
