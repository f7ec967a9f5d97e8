"""The probabilities are collected in a tensor of the autocast dtype, the softmax gives float32."""

from found.case import Case


def build():
    import torch
    from transformers import BigBirdPegasusConfig
    from transformers.models.bigbird_pegasus.modeling_bigbird_pegasus import BigBirdPegasusEncoder

    config = BigBirdPegasusConfig(
        vocab_size=8,
        d_model=8,
        encoder_layers=1,
        encoder_attention_heads=2,
        encoder_ffn_dim=8,
        max_position_embeddings=32,
        block_size=2,
        num_random_blocks=1,
        attention_type="block_sparse",
    )
    return BigBirdPegasusEncoder(config), (torch.full((1, 32), 3),), {"output_attentions": True}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/bigbird_pegasus/modeling_bigbird_pegasus.py",
    line=648,
    code="AMP105",
    scenario="autocast-bf16",
    error="scatter",
    breaks="BigBird-Pegasus with block-sparse attention and `output_attentions=True` cannot run under autocast.",
    build=build,
    mode="eval-no-grad",
)
