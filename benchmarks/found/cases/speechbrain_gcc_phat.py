"""The cross spectrum becomes complex, which has no bfloat16."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.multi_mic import GccPhat

    return GccPhat(), (torch.randn(1, 4, 9, 2, 10),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/multi_mic.py",
    line=767,
    code=None,
    scenario="bf16",
    error="BFloat16",
    breaks="Delays between microphones (`GccPhat`) cannot be computed in bfloat16.",
    build=build,
    mode="eval-no-grad",
)
