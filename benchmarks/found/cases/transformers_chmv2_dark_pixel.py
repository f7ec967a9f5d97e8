"""The shift is zero in float16, so that a pixel whose bins are all negative has no weights left."""

from found.case import Case


def build():
    import torch
    from transformers import CHMv2Config
    from transformers.models.chmv2.modeling_chmv2 import CHMv2FeaturesToDepth

    config = CHMv2Config(bins_strategy="chmv2_mixlog", norm_strategy="chmv2_mixlog")
    last = torch.nn.Conv2d(3, 4, 1)
    torch.nn.init.constant_(last.bias, -2.0)
    return torch.nn.Sequential(last, CHMv2FeaturesToDepth(config)), (torch.rand(1, 3, 2, 2),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/chmv2/modeling_chmv2.py",
    line=307,
    code="AMP302",
    scenario="autocast-fp16",
    error="differs from float32",
    breaks="CHMv2 under autocast in float16 gives a depth of zero where no bin responds.",
    build=build,
    mode="eval-no-grad",
)
