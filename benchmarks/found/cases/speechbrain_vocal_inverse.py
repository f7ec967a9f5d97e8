"""Under autocast the autocorrelation is half, which no solver takes."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.vocal_features import inverse_filter

    return inverse_filter, (torch.randn(1, 3, 64),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/vocal_features.py",
    line=405,
    code="AMP305",
    scenario="autocast-bf16",
    error="not implemented for",
    breaks="Vocal features of linear prediction cannot be computed in a module under autocast.",
    build=build,
    mode="eval-no-grad",
)
