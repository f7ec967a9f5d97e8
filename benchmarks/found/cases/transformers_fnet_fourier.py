"""The projection after the embeddings gives bfloat16 under autocast, which no FFT takes."""

from found.case import Case


def build():
    import torch
    from transformers import FNetConfig, FNetModel

    config = FNetConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, intermediate_size=8, max_position_embeddings=8
    )
    return FNetModel(config), (torch.zeros(1, 4, dtype=torch.long),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/fnet/modeling_fnet.py",
    line=170,
    code="AMP305",
    scenario="autocast-bf16",
    error="nsupported",
    breaks="FNet cannot run under autocast in bfloat16.",
    build=build,
    mode="eval-no-grad",
)
