"""The latents are drawn in float32 and go into a linear layer."""

from found.case import Case


def build():
    import torch
    from x_transformers import Decoder, TransformerWrapper
    from x_transformers.xm_latent_decoder import XMLatentDecoder

    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    net = TransformerWrapper(num_tokens=8, max_seq_len=16, attn_layers=layers)
    return XMLatentDecoder(net, always_latent_proj=True), (torch.randint(0, 8, (1, 8)),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/xm_latent_decoder.py",
    line=265,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`XMLatentDecoder` in half precision cannot run without latents given: it draws its own in float32.",
    build=build,
    mode="eval-no-grad",
)
