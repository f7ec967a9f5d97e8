"""The squares overflow in float16 beyond 256, and what is divided by infinity is zero."""

from found.case import Case


def build():
    import torch
    from kornia.models.efficient_vit.nn.norm import build_norm

    return build_norm("ln2d", 4), (1000 * torch.randn(1, 4, 2, 2),), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/models/efficient_vit/nn/norm.py",
    line=45,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="EfficientViT's `ln2d` norm in float16 gives zeros for values of some hundreds.",
    build=build,
    mode="eval-no-grad",
)
