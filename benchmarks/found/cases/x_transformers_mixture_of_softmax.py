"""Autocast is switched off, and half probabilities meet float32 weights."""

from found.case import Case


def build():
    import torch
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    net = TransformerWrapper(num_tokens=8, max_seq_len=8, attn_layers=layers, mixture_of_softmax=True)
    return net, (torch.randint(0, 8, (1, 4)),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/x_transformers.py",
    line=4635,
    code="AMP106",
    scenario="autocast-bf16",
    error="scalar type",
    breaks="`TransformerWrapper(mixture_of_softmax=True)` cannot run under autocast.",
    build=build,
)
