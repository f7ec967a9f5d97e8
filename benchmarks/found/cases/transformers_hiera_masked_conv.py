"""The mask is interpolated in float32 and makes the image float32."""

from found.case import Case


def build():
    import torch
    from transformers import HieraConfig
    from transformers.models.hiera.modeling_hiera import HieraPatchEmbeddings

    config = HieraConfig(image_size=[64, 64], embed_dim=8, num_channels=1)
    return HieraPatchEmbeddings(config, is_mae=True), (torch.randn(1, 1, 64, 64),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/hiera/modeling_hiera.py",
    line=186,
    code="AMP103",
    scenario="bf16",
    error="type",
    breaks="`HieraForPreTraining` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
