"""Noise is assigned to images by cdist, which has no kernel for 16 bit."""

from found.case import Case


def build():
    import torch
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    unet = Unet(8, dim_mults=(1, 2), flash_attn=False)
    return GaussianDiffusion(unet, image_size=16, timesteps=10, immiscible=True), (torch.rand(2, 3, 16, 16),), {}


CASE = Case(
    package="denoising-diffusion-pytorch",
    release="2.3.4",
    path="denoising_diffusion_pytorch/denoising_diffusion_pytorch.py",
    line=771,
    code=None,
    scenario="bf16",
    error="not implemented for",
    breaks="`GaussianDiffusion(immiscible=True)` trains in float32 only.",
    build=build,
)
