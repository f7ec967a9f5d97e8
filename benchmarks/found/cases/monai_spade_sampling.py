"""The noise to sample from is drawn in float32."""

from found.case import Case


def build():
    import torch
    from monai.networks.nets.spade_network import SPADEDecoder

    decoder = SPADEDecoder(
        spatial_dims=2,
        out_channels=1,
        label_nc=2,
        input_shape=[8, 8],
        channels=[8, 4],
        z_dim=4,
        spade_intermediate_channels=4,
    )
    return decoder, (torch.rand(1, 2, 8, 8),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/nets/spade_network.py",
    line=326,
    code="AMP110",
    scenario="bf16",
    error="dtype",
    breaks="A SPADE VAE in half precision cannot sample: it draws its latent in float32.",
    build=build,
    mode="eval-no-grad",
)
