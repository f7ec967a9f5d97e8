"""The filters are made in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.features import Filterbank

    return Filterbank(n_mels=4, n_fft=16), (torch.rand(1, 5, 9),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/features.py",
    line=574,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="`Filterbank` cannot take half spectrograms.",
    build=build,
    mode="eval-no-grad",
)
