"""The squares overflow in float16 beyond 256, and what is divided by infinity is zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.autoencoder_kl_ltx2_audio import LTX2AudioPixelNorm

    return LTX2AudioPixelNorm(), (1000 * torch.randn(1, 4, 2, 2),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_kl_ltx2_audio.py",
    line=93,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="LTX-2's audio autoencoder in float16 gives zeros for features of some hundreds.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
