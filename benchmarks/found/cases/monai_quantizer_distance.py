"""The input is cast to float32 by hand, the codebook is not."""

from found.case import Case


def build():
    import torch
    from monai.networks.layers.vector_quantizer import EMAQuantizer

    return EMAQuantizer(spatial_dims=2, num_embeddings=4, embedding_dim=3), (torch.randn(1, 3, 4, 4),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/layers/vector_quantizer.py",
    line=116,
    code="AMP102",
    scenario="bf16",
    error="dtype",
    breaks="A VQ-VAE in half precision cannot run.",
    build=build,
    mode="eval-no-grad",
)
