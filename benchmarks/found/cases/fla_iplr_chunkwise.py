"""The identity is made in float32, and the inverse that it joins meets half values."""

from found.case import Case


def build():
    import torch
    from fla.ops.generalized_delta_rule.iplr.naive import iplr_chunkwise

    return iplr_chunkwise, tuple(torch.randn(5, 1, 1, 4, 4).unbind()), {"chunk_size": 4}


CASE = Case(
    package="flash-linear-attention",
    release="0.6.0",
    path="fla/ops/generalized_delta_rule/iplr/naive.py",
    line=61,
    code="AMP110",
    scenario="bf16",
    error="scalar type",
    breaks="The identity-plus-low-rank delta rule's reference cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
