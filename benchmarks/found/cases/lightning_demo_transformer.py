"""The positions are made in float32, the layers that read their sum are half."""

from found.case import Case


def build():
    import torch
    from lightning.pytorch.demos import Transformer

    model = Transformer(vocab_size=8, ninp=8, nhid=8, nlayers=1, dropout=0.0)
    return model, (torch.tensor([[1, 2]]), torch.tensor([[2, 3]])), {}


CASE = Case(
    package="lightning",
    release="2.6.6",
    path="lightning/pytorch/demos/transformer.py",
    line=78,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="Lightning's demonstration transformer cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
