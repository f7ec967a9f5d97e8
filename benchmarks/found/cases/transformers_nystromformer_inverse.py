"""The identity of the iterative inverse is made in float32."""

from found.case import Case


def build():
    import torch
    from transformers import NystromformerConfig
    from transformers.models.nystromformer.modeling_nystromformer import NystromformerSelfAttention

    config = NystromformerConfig(hidden_size=8, num_attention_heads=2, segment_means_seq_len=8, num_landmarks=4)
    return NystromformerSelfAttention(config), (torch.randn(1, 8, 8),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/nystromformer/modeling_nystromformer.py",
    line=157,
    code="AMP103",
    scenario="fp16",
    error="scalar type",
    breaks="Nystromformer with landmarks (its default) cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
