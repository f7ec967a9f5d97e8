"""The epsilon is zero in float16, so that a frame without variance is divided by zero."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.conv_tasnet import ChannelwiseLayerNorm

    x = torch.randn(1, 4, 3)
    x[:, 2] = 0
    return ChannelwiseLayerNorm(3), (x,), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/conv_tasnet.py",
    line=569,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="Conv-TasNet in float16 turns silence into NaN.",
    build=build,
    mode="eval-no-grad",
)
