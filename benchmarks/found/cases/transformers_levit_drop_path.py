"""What is dropped in training is drawn in float32, and the residual becomes float32."""

from found.case import Case


def build():
    import torch
    from transformers import LevitConfig
    from transformers.models.levit.modeling_levit import LevitStage

    config = LevitConfig()
    stage = LevitStage(
        config, 0, 8, 4, 1, 2, 2, 2, ["Subsample", 4, 2, 2, 2, 2], 2
    )
    for layer in stage.layers:
        layer.drop_rate = 0.5
    return stage, (torch.randn(2, 4, 8),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/levit/modeling_levit.py",
    line=132,
    code="AMP103",
    scenario="bf16",
    error='same dtype',
    breaks='LeViT in half precision cannot be trained with a drop path rate.',
    build=build,
)
