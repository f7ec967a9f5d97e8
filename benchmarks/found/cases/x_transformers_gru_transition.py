"""The stream is float32, the candidate that it is interpolated with is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from x_transformers.full_bandwidth import GRUGatingTransition

    return GRUGatingTransition(8), (torch.randn(1, 4, 8), torch.randn(1, 4, 8)), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/full_bandwidth.py",
    line=128,
    code="AMP104",
    scenario="autocast-bf16",
    error="dtype",
    breaks='`FullBandwidth(transition="gru")` cannot run under autocast.',
    build=build,
)
