"""The epsilon is zero in float16, so that black is divided by zero."""

from found.case import Case


def build():
    import torch
    from kornia.color import rgb_to_luv

    image = torch.rand(1, 3, 4, 4)
    image[..., 0, 0] = 0
    return rgb_to_luv, (image,), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/color/luv.py",
    line=100,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="`rgb_to_luv` under autocast in float16 turns black pixels into NaN.",
    build=build,
    mode="eval-no-grad",
)
