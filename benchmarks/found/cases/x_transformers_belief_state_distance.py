"""The distances are made float32 and go into a half layer."""

from found.case import Case


def build():
    import random

    import torch
    from x_transformers import Decoder, TransformerWrapper
    from x_transformers.belief_state_wrapper import BeliefStateWrapper

    def net():
        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
        return TransformerWrapper(num_tokens=8, max_seq_len=8, attn_layers=layers)

    random.seed(0)
    wrapper = BeliefStateWrapper(net(), net(), cond_on_distance=True, cond_on_distance_prob=0.999)
    return wrapper, (torch.randint(0, 8, (1, 6)),), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/belief_state_wrapper.py",
    line=387,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`BeliefStateWrapper(cond_on_distance=True)` cannot be trained in half precision.",
    build=build,
)
