"""The matrix of the transform is a plain attribute in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.features import DCT

    return DCT(input_size=8, n_out=4), (torch.randn(1, 5, 8),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/features.py",
    line=827,
    code="AMP110",
    scenario="bf16",
    error="dtype",
    breaks="MFCC features cannot be computed in half precision.",
    build=build,
    mode="eval-no-grad",
)
