"""The epsilon is zero in float16, so that a position of zeros is divided by zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.autoencoder_kl_ltx2 import PerChannelRMSNorm

    features = torch.randn(1, 4, 2, 2)
    features[..., 0, 0] = 0
    return PerChannelRMSNorm(), (features,), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_kl_ltx2.py",
    line=58,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="LTX-2's autoencoder in float16 gives NaN where all channels are zero.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
