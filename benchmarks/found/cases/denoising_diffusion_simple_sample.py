"""Sampling starts from noise that is drawn in float32."""

from found.case import Case


def build():
    from denoising_diffusion_pytorch.simple_diffusion import GaussianDiffusion, UViT
    from torch import nn

    class Sampling(nn.Module):
        """Calls sample where a module is called."""

        def __init__(self, diffusion):
            super().__init__()
            self.diffusion = diffusion

        def forward(self):
            return self.diffusion.sample(batch_size=1)

    unet = UViT(8, dim_mults=(1, 2), vit_depth=1, attn_dim_head=4, attn_heads=2)
    return Sampling(GaussianDiffusion(unet, image_size=16, num_sample_steps=1)), (), {}


CASE = Case(
    package="denoising-diffusion-pytorch",
    release="2.3.4",
    path="denoising_diffusion_pytorch/simple_diffusion.py",
    line=437,
    code="AMP103",
    scenario="bf16",
    error="type",
    breaks="`simple_diffusion.GaussianDiffusion.sample` fails for a model in half precision.",
    build=build,
    mode="eval-no-grad",
)
