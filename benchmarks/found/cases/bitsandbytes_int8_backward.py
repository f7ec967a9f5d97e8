"""Backward runs without autocast and multiplies a half gradient with the float32 input."""

from found.case import Case


def build():
    import torch
    from bitsandbytes.nn import Linear8bitLt

    return Linear8bitLt(8, 4), (torch.randn(2, 8),), {}


CASE = Case(
    package="bitsandbytes",
    release="0.50.2",
    path="bitsandbytes/autograd/_functions.py",
    line=288,
    code="AMP204",
    scenario="autocast-bf16",
    error="dtype",
    breaks="`Linear8bitLt` with float weights cannot be trained under autocast.",
    build=build,
    device="cpu",
)
