"""The squares overflow in float16 beyond 256, and what is divided by infinity is zero."""

from found.case import Case


def build():
    import torch
    from transformers.models.ibert.quant_modules import IntLayerNorm

    norm = IntLayerNorm(4, 1e-5)
    with torch.no_grad():
        norm.weight.fill_(1.0)
    return norm, (1000 * torch.randn(1, 2, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/ibert/quant_modules.py",
    line=483,
    code="AMP303",
    scenario="fp16",
    error="differs from float32",
    breaks="I-BERT in float16 loses states of some hundreds in its layer norm.",
    build=build,
    mode="eval-no-grad",
)
