"""The autocorrelation is taken by an FFT, which bfloat16 has none of."""

from found.case import Case


def build():
    import torch
    from transformers.models.autoformer.modeling_autoformer import AutoformerAttention

    return AutoformerAttention(8, 2), (torch.randn(1, 8, 8),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/autoformer/modeling_autoformer.py",
    line=497,
    code="AMP305",
    scenario="bf16",
    error="nsupported",
    breaks="Autoformer cannot run in bfloat16.",
    build=build,
    mode="eval-no-grad",
)
