"""The blur's kernel is a float32 buffer by name, which a model built in bfloat16 keeps."""

from found.case import Case


def build():
    import torch
    from diffusers.pipelines.ltx2.latent_upsampler import BlurDownsample

    return BlurDownsample(dims=2, stride=2), (torch.randn(1, 2, 4, 4),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/pipelines/ltx2/latent_upsampler.py",
    line=123,
    code="AMP104",
    scenario="bf16-mixed-params",
    error="type",
    breaks="LTX-2's latent upsampler, loaded in bfloat16 without accelerate, cannot run.",
    build=build,
    imports=("diffusers.loaders.peft",),
    mode="eval-no-grad",
)
