"""The epsilon is zero in float16, so that an input without variance is divided by zero."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.dual_path import GlobalLayerNorm

    return GlobalLayerNorm(3, 3), (torch.zeros(1, 3, 4),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/dual_path.py",
    line=92,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="SepFormer and dual-path RNNs in float16 turn silence into NaN.",
    build=build,
    mode="eval-no-grad",
)
