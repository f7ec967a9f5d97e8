"""The identity is made in float32, and the inverse that it joins meets half values."""

from found.case import Case


def build():
    import torch
    from fla.ops.delta_rule.naive import delta_rule_chunkwise

    heads = torch.randn(3, 1, 1, 4, 4)
    return delta_rule_chunkwise, (*heads.unbind(), torch.rand(1, 1, 4)), {"chunk_size": 4}


CASE = Case(
    package="flash-linear-attention",
    release="0.6.0",
    path="fla/ops/delta_rule/naive.py",
    line=57,
    code="AMP110",
    scenario="bf16",
    error="scalar type",
    breaks="The delta rule's reference by chunks cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
