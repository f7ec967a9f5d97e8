"""The waveform goes to an STFT as it is, which has no kernel for bfloat16."""

from found.case import Case


def build():
    import torch
    from diffusers.models.autoencoders.autoencoder_mmaudio import MMAudioMelSpectrogram

    return MMAudioMelSpectrogram(16000, 32, 4, 8), (torch.rand(1, 64),), {}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_mmaudio.py",
    line=334,
    code="AMP305",
    scenario="bf16",
    error="support",
    breaks="Kandinsky 6's audio encoder cannot run in bfloat16.",
    build=build,
    imports=("diffusers.loaders.peft",),
    mode="eval-no-grad",
)
