"""Both floors are zero in float16, so that a pixel whose bins are all negative is divided by zero."""

from found.case import Case


def build():
    import torch
    from transformers import CHMv2Config
    from transformers.models.chmv2.modeling_chmv2 import CHMv2FeaturesToDepth

    config = CHMv2Config(bins_strategy="chmv2_mixlog", norm_strategy="chmv2_mixlog")
    return CHMv2FeaturesToDepth(config), (-torch.rand(1, 4, 2, 2),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/chmv2/modeling_chmv2.py",
    line=307,
    code="AMP302",
    scenario="autocast-fp16",
    error="inf or nan",
    breaks="CHMv2 depth estimation in float16 gives NaN where no bin responds.",
    build=build,
    mode="eval-no-grad",
)
