"""The epsilon is zero in float16, so that a position of zeros is divided by zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.autoencoder_kl_ltx2_audio import LTX2AudioPixelNorm

    features = torch.randn(1, 4, 2, 2)
    features[..., 0, 0] = 0
    return LTX2AudioPixelNorm(), (features,), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_kl_ltx2_audio.py",
    line=94,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="LTX-2's audio autoencoder in float16 gives NaN where all channels are zero.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
