"""The spectrum is taken by an FFT, which bfloat16 has none of."""

from found.case import Case


def build():
    import torch
    from monai.losses import JukeboxLoss

    return JukeboxLoss(spatial_dims=2), (torch.randn(1, 1, 4, 4), torch.randn(1, 1, 4, 4)), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/losses/spectral_loss.py",
    line=84,
    code="AMP305",
    scenario="bf16",
    error="nsupported",
    breaks="`JukeboxLoss` cannot be computed in bfloat16.",
    build=build,
    mode="eval-no-grad",
)
