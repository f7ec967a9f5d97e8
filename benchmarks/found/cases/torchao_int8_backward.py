"""Backward runs without autocast and multiplies a half gradient with the float32 input."""

from found.case import Case


def build():
    import torch
    from torchao.prototype.quantized_training.int8 import Int8QuantizedTrainingLinearWeight

    layer = torch.nn.Linear(8, 4, bias=False)
    layer.weight = torch.nn.Parameter(Int8QuantizedTrainingLinearWeight.from_float(layer.weight))
    return layer, (torch.randn(2, 8),), {}


CASE = Case(
    package="torchao",
    release="0.18.0",
    path="torchao/prototype/quantized_training/int8.py",
    line=170,
    code="AMP204",
    scenario="autocast-bf16",
    error='dtype',
    breaks='A linear layer whose weight is quantised to int8 cannot be trained under autocast.',
    build=build,
)
