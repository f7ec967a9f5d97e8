"""The latents were bytes and become float32 by a division, the tiled decoder is half."""

from found.case import Case


def build():
    import torch
    from diffusers import AutoencoderTiny

    model = AutoencoderTiny(
        encoder_block_out_channels=(4, 4, 4, 4),
        decoder_block_out_channels=(4, 4, 4, 4),
        num_encoder_blocks=(1, 1, 1, 1),
        num_decoder_blocks=(1, 1, 1, 1),
    )
    model.enable_tiling()
    return model, (torch.rand(1, 3, 16, 16),), {"return_dict": False}


CASE = Case(
    package="diffusers",
    release="0.42.1",
    path="diffusers/models/autoencoders/autoencoder_tiny.py",
    line=250,
    code="AMP103",
    scenario="bf16",
    error="type",
    breaks="`AutoencoderTiny` in half precision cannot run in tiles.",
    build=build,
    mode="eval-no-grad",
    imports=("diffusers.loaders.peft",),
)
