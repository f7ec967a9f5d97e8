"""The labels are a one-hot in float32, which the next linear layer does not take."""

from found.case import Case


def build():
    import torch
    from denoising_diffusion_pytorch.karras_unet import KarrasUnet

    model = KarrasUnet(
        image_size=8,
        dim=8,
        dim_max=16,
        num_classes=3,
        num_downsamples=1,
        num_blocks_per_stage=1,
        attn_res=(),
        attn_dim_head=4,
    )
    return model, (torch.randn(1, 4, 8, 8), torch.rand(1)), {"class_labels": torch.tensor([1])}


CASE = Case(
    package="denoising-diffusion-pytorch",
    release="2.3.4",
    path="denoising_diffusion_pytorch/karras_unet.py",
    line=179,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`KarrasUnet(num_classes=...)` in half precision cannot run.",
    build=build,
)
