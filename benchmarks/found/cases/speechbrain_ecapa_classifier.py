"""The weight is a `torch.FloatTensor`, so a model made under a half default dtype keeps it in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.ECAPA_TDNN import Classifier

    return Classifier(input_size=4, out_neurons=2), (torch.randn(2, 1, 4),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/ECAPA_TDNN.py",
    line=635,
    code=None,
    scenario="bf16-mixed-params",
    error="dtype",
    breaks="ECAPA-TDNN's classifier built under a half default dtype cannot run.",
    build=build,
    mode="eval-no-grad",
)
