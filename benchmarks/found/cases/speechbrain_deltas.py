"""The kernel is built in float32 by name, so a model made under a half default dtype keeps it."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.features import Deltas

    return Deltas(input_size=3), (torch.randn(1, 5, 3),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/features.py",
    line=894,
    code=None,
    scenario="bf16-mixed-params",
    error="type",
    breaks="`Deltas` built under a half default dtype cannot run on half features.",
    build=build,
    mode="eval-no-grad",
)
