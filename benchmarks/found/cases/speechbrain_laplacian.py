"""The kernel is built in float32 by name, so a loss made under a half default dtype keeps it."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.losses import Laplacian

    return Laplacian(3), (torch.randn(1, 1, 5, 5),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/losses.py",
    line=1885,
    code=None,
    scenario="bf16-mixed-params",
    error="type",
    breaks="`LaplacianVarianceLoss` built under a half default dtype cannot run on half spectrograms.",
    build=build,
    mode="eval-no-grad",
)
