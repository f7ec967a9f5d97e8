"""The depth bins are made in float32."""

from found.case import Case


def build():
    import torch
    from transformers import CHMv2Config
    from transformers.models.chmv2.modeling_chmv2 import CHMv2FeaturesToDepth

    config = CHMv2Config(bins_strategy="linear", norm_strategy="linear")
    return CHMv2FeaturesToDepth(config), (torch.rand(1, 4, 2, 2),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/chmv2/modeling_chmv2.py",
    line=349,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="CHMv2 depth estimation with linear bins cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
