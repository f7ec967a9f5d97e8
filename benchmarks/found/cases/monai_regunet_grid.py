"""The grid of the affine warp is float32."""

from found.case import Case


def build():
    import torch
    from monai.networks.nets.regunet import GlobalNet

    net = GlobalNet(image_size=[16, 16], spatial_dims=2, in_channels=1, num_channel_initial=4, depth=2)
    return net, (torch.randn(1, 1, 16, 16),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/nets/regunet.py",
    line=289,
    code="AMP110",
    scenario="bf16",
    error="scalar type",
    breaks="`GlobalNet` in half precision cannot run.",
    build=build,
    mode="eval-no-grad",
)
