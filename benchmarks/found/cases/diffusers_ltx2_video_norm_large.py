"""The squares overflow in float16 beyond 256, and what is divided by infinity is zero."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.autoencoder_kl_ltx2 import PerChannelRMSNorm

    return PerChannelRMSNorm(), (1000 * torch.randn(1, 4, 2, 2),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_kl_ltx2.py",
    line=56,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="LTX-2's autoencoder in float16 gives zeros for features of some hundreds.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
