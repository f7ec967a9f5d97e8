"""The attention is written into float32 zeros, and meets half values."""

from found.case import Case


def build():
    import torch
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_chunkwise

    return dplr_chunkwise, tuple(torch.randn(6, 1, 1, 4, 4).unbind()), {"chunk_size": 4}


CASE = Case(
    package="flash-linear-attention",
    release="0.6.0",
    path="fla/ops/generalized_delta_rule/dplr/naive.py",
    line=91,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="The diagonal-plus-low-rank delta rule's reference cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
