"""The softmax gives float32, which is multiplied with the half value."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.attention import RelPosMHAXL

    x = torch.randn(1, 4, 8)
    return RelPosMHAXL(num_heads=2, embed_dim=8), (x, x, x, torch.randn(1, 7, 8)), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/attention.py",
    line=730,
    code="AMP102",
    scenario="bf16",
    error="scalar type",
    breaks="The Conformer's attention (`RelPosMHAXL`) cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
