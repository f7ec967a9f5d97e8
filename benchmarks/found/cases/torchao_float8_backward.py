"""Backward runs without autocast and multiplies a half gradient with the float32 weight."""

import torch
from found.case import Case


def build():
    from torchao.float8.config import CastConfig, Float8LinearConfig, ScalingType
    from torchao.float8.float8_linear import matmul_with_hp_or_float8_args
    from torchao.float8.float8_training_tensor import LinearMMConfig

    off = CastConfig(scaling_type=ScalingType.DISABLED)
    config = Float8LinearConfig(cast_config_input=off, cast_config_weight=off, cast_config_grad_output=off)

    class Product(torch.nn.Module):
        """The function as float8 layers call it, with all casts left out."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 8))

        def forward(self, x):
            return matmul_with_hp_or_float8_args.apply(x, self.weight.t(), LinearMMConfig(), config)

    return Product(), (torch.randn(2, 8),), {}


CASE = Case(
    package="torchao",
    release="0.18.0",
    path="torchao/float8/float8_linear.py",
    line=143,
    code="AMP204",
    scenario="autocast-bf16",
    error="dtype",
    breaks="A float8 layer with its casts disabled cannot be trained under autocast.",
    build=build,
)
