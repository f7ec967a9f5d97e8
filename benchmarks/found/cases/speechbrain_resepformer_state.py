"""The first state of the LSTM is made in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.resepformer import SegLSTM

    return SegLSTM(4, 3), (torch.randn(1, 5, 4), None), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/resepformer.py",
    line=264,
    code=None,
    scenario="bf16",
    error='dtype',
    breaks="The RE-SepFormer's `SegLSTM` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
