"""The sine and cosine positions are always float32, the normalisation after them was built in bfloat16."""

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
        pos_embed_type="sincos",
    )
    return model, (torch.randn(1, 1, 8, 8),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/nets/masked_autoencoder_vit.py",
    line=198,
    code="AMP104",
    scenario="bf16-mixed-params",
    error="scalar type",
    breaks='`MaskedAutoEncoderViT(pos_embed_type="sincos")` built in bfloat16 cannot run.',
    build=build,
    mode="eval-no-grad",
)
