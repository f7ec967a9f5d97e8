"""The first context is made in float32, and makes the cell's input float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.RNN import AttentionalRNNDecoder

    model = AttentionalRNNDecoder("gru", "content", 4, 3, 1, enc_dim=5, input_size=6)
    return model, (torch.randn(1, 2, 6), torch.randn(1, 4, 5), torch.ones(1)), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/RNN.py",
    line=640,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="`AttentionalRNNDecoder` with a GRU cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
