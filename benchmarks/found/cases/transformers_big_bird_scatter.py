"""The probabilities are collected in a tensor of the autocast dtype, the softmax gives float32."""

from found.case import Case


def build():
    import torch
    from transformers import BigBirdConfig, BigBirdModel

    config = BigBirdConfig(
        vocab_size=8,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
        block_size=2,
        num_random_blocks=1,
        attention_type="block_sparse",
    )
    return BigBirdModel(config), (torch.ones(1, 32, dtype=torch.long),), {"output_attentions": True}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/big_bird/modeling_big_bird.py",
    line=667,
    code="AMP105",
    scenario="autocast-bf16",
    error="scatter",
    breaks="BigBird with block-sparse attention and `output_attentions=True` cannot run under autocast.",
    build=build,
    mode="eval-no-grad",
)
