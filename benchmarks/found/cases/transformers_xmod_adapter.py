"""The result is made like the layer norm's float32 output, the adapter's is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from transformers import XmodConfig
    from transformers.models.xmod.modeling_xmod import XmodOutput

    config = XmodConfig(
        hidden_size=8, intermediate_size=8, languages=("en_XX",), ln_before_adapter=False, adapter_reuse_layer_norm=True
    )
    args = torch.randn(1, 3, 8), torch.randn(1, 3, 8), torch.zeros(1, 3, dtype=torch.long)
    return XmodOutput(config), args, {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/xmod/modeling_xmod.py",
    line=455,
    code="AMP105",
    scenario="autocast-bf16",
    error="Index put requires the source and destination dtypes match",
    breaks="X-MOD cannot run under autocast: its language adapters write into a float32 result.",
    build=build,
    mode="eval-no-grad",
)
