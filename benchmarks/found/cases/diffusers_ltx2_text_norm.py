"""The squares overflow in float16 beyond 256, and what is multiplied by their inverse root is zero."""

from found.case import Case


def build():
    import torch
    from diffusers.pipelines.ltx2.connectors import per_token_rms_norm

    return per_token_rms_norm, (1000 * torch.randn(1, 2, 4, 3),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/pipelines/ltx2/connectors.py",
    line=81,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="LTX-2 in float16 loses text features of some hundreds.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
