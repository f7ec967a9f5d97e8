"""Backward runs without autocast and multiplies a half gradient with the float32 weight."""

from found.case import Case


def build():
    import torch
    from torchao.prototype.quantized_training.int8_mixed_precision import (
        Int8MixedPrecisionTrainingConfig,
        Int8MixedPrecisionTrainingLinear,
    )

    config = Int8MixedPrecisionTrainingConfig(output=False, grad_input=False, grad_weight=False)
    return Int8MixedPrecisionTrainingLinear(8, 4, config=config), (torch.randn(2, 8),), {}


CASE = Case(
    package="torchao",
    release="0.18.0",
    path="torchao/prototype/quantized_training/int8_mixed_precision.py",
    line=265,
    code=None,
    scenario="autocast-bf16",
    error="dtype",
    breaks="Mixed int8 training with a float gradient of the input fails under autocast.",
    build=build,
)
