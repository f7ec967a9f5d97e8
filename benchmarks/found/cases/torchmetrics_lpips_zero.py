"""The epsilon is zero in float16, so that features of zero are divided by zero."""

from found.case import Case


def build():
    import torch
    from torchmetrics.functional.image.lpips import _normalize_tensor

    features = torch.rand(1, 4, 2, 2)
    features[..., 0, 0] = 0
    return _normalize_tensor, (features,), {}


CASE = Case(
    package="torchmetrics",
    release="1.9.0",
    path="torchmetrics/functional/image/lpips.py",
    line=221,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="LPIPS in float16 is NaN where no channel of a layer responds.",
    build=build,
    mode="eval-no-grad",
)
