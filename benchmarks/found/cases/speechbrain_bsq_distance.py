"""The codebook is cast to float32, the input is not."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.bsq import BinarySphericalQuantizer

    return BinarySphericalQuantizer(code_dim=3), (torch.randn(1, 4, 3),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/bsq.py",
    line=148,
    code="AMP102",
    scenario="bf16",
    error="scalar type",
    breaks="`BinarySphericalQuantizer` cannot run in half precision.",
    build=build,
)
