"""Generating draws its own latents in float32, which a half layer projects."""

from found.case import Case


def build():
    import torch
    from torch import nn
    from x_transformers import Decoder, TransformerWrapper
    from x_transformers.xm_latent_decoder import XMLatentDecoder

    class Generating(nn.Module):
        """Calls generate where a module is called."""

        def __init__(self):
            super().__init__()
            layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
            net = TransformerWrapper(num_tokens=8, max_seq_len=16, attn_layers=layers)
            self.decoder = XMLatentDecoder(net, always_latent_proj=True)

        def forward(self, prompt):
            return self.decoder.generate(prompt, 2)

    return Generating(), (torch.randint(0, 8, (1, 4)),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/xm_latent_decoder.py",
    line=128,
    code="AMP103",
    scenario="bf16",
    error="same dtype",
    breaks="`XMLatentDecoder.generate` in half precision cannot draw its own latents.",
    build=build,
    mode="eval-no-grad",
)
