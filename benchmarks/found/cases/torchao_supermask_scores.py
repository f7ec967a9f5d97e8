"""The scores are clamped to 9e9, which float16 cannot hold."""

from found.case import Case


def build():
    import torch
    from torchao.sparsity.supermask import SupermaskLinear

    return SupermaskLinear(0.5, 1, False, False, 8, 4, bias=False), (torch.randn(2, 8),), {}


CASE = Case(
    package="torchao",
    release="0.18.0",
    path="torchao/sparsity/supermask.py",
    line=24,
    code="AMP301",
    scenario="fp16",
    error="overflow",
    breaks="A supermask linear layer in float16 cannot run.",
    build=build,
)
