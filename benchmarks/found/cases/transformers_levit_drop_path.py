"""What is dropped in training is drawn in float32, and the residual becomes float32."""

from found.case import Case


def build():
    import torch
    from transformers.models.levit.modeling_levit import LevitMLPLayer, LevitResidualLayer

    layers = [LevitResidualLayer(LevitMLPLayer(4, 8), 0.5) for _ in range(2)]
    return torch.nn.Sequential(*layers), (torch.randn(2, 3, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/levit/modeling_levit.py",
    line=132,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="LeViT in half precision cannot be trained with a drop path rate.",
    build=build,
)
