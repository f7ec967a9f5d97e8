"""vector-quantize-pytorch's LFQ behind an encoder. It needs no GPU; only the package's ``__init__`` is left out."""

from __future__ import annotations

import importlib

import torch
from stand_ins import bare_packages

bare_packages("vector_quantize_pytorch")

DIM, CODEBOOK = 16, 256
"""``DIM`` is not log2 of ``CODEBOOK``, so the quantizer has projections."""


def autoencoder_front() -> tuple[torch.nn.Module, tuple[torch.Tensor], dict[str, object]]:
    """An encoder, whose result autocast makes low precision as in every autoencoder, and the quantizer; (2, 32, 8)."""
    module = importlib.import_module("vector_quantize_pytorch.lookup_free_quantization")
    quantizer = module.LFQ(dim=DIM, codebook_size=CODEBOOK)
    return torch.nn.Sequential(torch.nn.Linear(8, DIM), quantizer), (torch.randn(2, 32, 8),), {}
