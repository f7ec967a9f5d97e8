"""The query is float32 once a bias is added, the scores are in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from transformers import DebertaConfig, DebertaModel

    config = DebertaConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    return DebertaModel(config), (torch.ones(1, 4, dtype=torch.long),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/deberta/modeling_deberta.py",
    line=263,
    code="AMP301",
    scenario="autocast-fp16",
    error="overflow",
    breaks="DeBERTa cannot run under autocast in float16: the mask's value is float32's least.",
    build=build,
    mode="eval-no-grad",
)
