"""What is masked gets 1e30, which float16 cannot hold."""

from found.case import Case


def build():
    import torch
    from speechbrain.lobes.models.FastSpeech2 import SSIMLoss

    return SSIMLoss(), (torch.rand(1, 16, 16), torch.rand(1, 16, 16), torch.tensor([16])), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/lobes/models/FastSpeech2.py",
    line=1305,
    code="AMP301",
    scenario="fp16",
    error="overflow",
    breaks="FastSpeech 2's SSIM loss cannot be computed in float16.",
    build=build,
    mode="eval-no-grad",
)
