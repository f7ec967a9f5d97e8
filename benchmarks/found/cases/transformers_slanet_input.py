"""The head casts features to float32 and calls half layers on them."""

from found.case import Case


def build():
    import torch
    from transformers import SLANetConfig
    from transformers.models.slanet.modeling_slanet import SLANetSLAHead

    config = SLANetConfig(hidden_size=8, post_conv_out_channels=4, out_channels=5, max_text_length=2)
    return SLANetSLAHead(config), (torch.randn(1, 3, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/slanet/modeling_slanet.py",
    line=108,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="SLANet table recognition cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
