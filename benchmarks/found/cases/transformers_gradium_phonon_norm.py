"""The squares overflow in float16 beyond 256, and what is multiplied by their inverse root is zero."""

from found.case import Case


def build():
    import torch
    from transformers.models.gradium_phonon_tts.modeling_gradium_phonon_tts import GradiumPhononTTSTimestepNorm

    return GradiumPhononTTSTimestepNorm(4), (1000 * torch.randn(1, 2, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/gradium_phonon_tts/modeling_gradium_phonon_tts.py",
    line=57,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="Gradium Phonon's time embeddings in float16 are lost beyond some hundreds.",
    build=build,
    mode="eval-no-grad",
)
