"""The grid of the filters is a plain attribute in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.CNN import SincConv

    return SincConv(out_channels=4, kernel_size=5, input_shape=(1, 64)), (torch.randn(1, 64),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/CNN.py",
    line=211,
    code="AMP104",
    scenario="bf16",
    error="dtype",
    breaks="`SincConv` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
