"""The relative positions are float32, and only the branch of one stream casts them."""

from found.case import Case


def build():
    import torch
    from transformers import XLNetConfig, XLNetModel

    config = XLNetConfig(vocab_size=8, d_model=8, n_layer=1, n_head=2, d_inner=8)
    ids, mapping = torch.ones(1, 4, dtype=torch.long), torch.ones(1, 1, 4)
    return XLNetModel(config), (ids,), {"target_mapping": mapping, "perm_mask": torch.zeros(1, 4, 4)}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/xlnet/modeling_xlnet.py",
    line=181,
    code="AMP103",
    scenario="bf16",
    error="type",
    breaks="XLNet in half precision cannot run with `target_mapping`, that is for permutation language modelling.",
    build=build,
    mode="eval-no-grad",
)
