"""Fourier features of the time are float32, and enter a linear layer."""

from found.case import Case


def build():
    import torch
    from denoising_diffusion_pytorch.karras_unet import KarrasUnet

    model = KarrasUnet(image_size=16, dim=8, dim_max=16, num_downsamples=1, num_blocks_per_stage=1, attn_res=(), fourier_dim=8, attn_dim_head=4, downsample_factor=2)
    return model, (torch.randn(1, 4, 16, 16), torch.rand(1)), {}


CASE = Case(
    package="denoising-diffusion-pytorch",
    release="2.3.4",
    path="denoising_diffusion_pytorch/karras_unet.py",
    line=179,
    code="AMP102",
    scenario="bf16",
    error='same dtype',
    breaks='`KarrasUnet` in half precision cannot run.',
    build=build,
)
