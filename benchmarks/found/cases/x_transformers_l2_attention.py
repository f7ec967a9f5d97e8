"""Distances between queries and keys by cdist, which has no kernel for 16 bit."""

from found.case import Case


def build():
    import torch
    from x_transformers.x_transformers import Attention

    return Attention(dim=16, heads=2, dim_head=8, l2_distance=True), (torch.randn(1, 4, 16),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/attend.py",
    line=137,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="Attention with `l2_distance=True` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
