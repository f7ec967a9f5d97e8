"""The mask tokens are repeated as float32 parameters, what is written over them is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from monai.networks.nets import MaskedAutoEncoderViT

    model = MaskedAutoEncoderViT(
        in_channels=1,
        img_size=(8, 8),
        patch_size=(4, 4),
        spatial_dims=2,
        hidden_size=8,
        mlp_dim=8,
        num_layers=1,
        num_heads=2,
        decoder_hidden_size=8,
        decoder_mlp_dim=8,
        decoder_num_layers=1,
        decoder_num_heads=2,
        masking_ratio=0.5,
    )
    return model, (torch.randn(1, 1, 8, 8),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/nets/masked_autoencoder_vit.py",
    line=204,
    code="AMP105",
    scenario="autocast-bf16",
    error="Index put requires the source and destination dtypes match",
    breaks="`MaskedAutoEncoderViT` cannot run under autocast.",
    build=build,
    mode="eval-no-grad",
)
