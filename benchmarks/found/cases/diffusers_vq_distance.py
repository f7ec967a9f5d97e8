"""Distances to the codebook by cdist, which has no kernel for 16 bit."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.vae import VectorQuantizer

    return VectorQuantizer(4, 3, 0.25), (torch.randn(1, 3, 2, 2),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/vae.py",
    line=644,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="`VQModel` in half precision cannot encode.",
    build=build,
    imports=("diffusers.loaders.peft",),
)
