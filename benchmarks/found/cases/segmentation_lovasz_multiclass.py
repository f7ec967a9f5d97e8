"""The gradient of the Jaccard index is float32, the errors are half."""

from found.case import Case


def build():
    import torch
    from segmentation_models_pytorch.losses import LovaszLoss

    return LovaszLoss(mode="multiclass"), (torch.randn(1, 3, 4, 4), torch.randint(0, 3, (1, 4, 4))), {}


CASE = Case(
    package="segmentation-models-pytorch",
    release="0.6.0",
    path="segmentation_models_pytorch/losses/lovasz.py",
    line=145,
    code="AMP104",
    scenario="bf16",
    error="dtype",
    breaks="`LovaszLoss` cannot be computed for a model in half precision.",
    build=build,
)
