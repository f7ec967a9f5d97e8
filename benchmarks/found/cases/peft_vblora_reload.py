"""The logits are restored into a float32 tensor, from weights that were saved in the adapter's dtype."""

import torch
from found.case import Case


def build():
    from types import SimpleNamespace

    from peft.tuners.vblora.model import VBLoRAModel

    def restore(bank, weights):
        model = torch.nn.Module()
        model.vblora_vector_bank = {"default": bank}
        config = SimpleNamespace(save_only_topk_weights=True)
        state = {"a_topk_indices": torch.tensor([[0, 2]]), "a_topk_weights": weights}
        (logits,) = VBLoRAModel._remap_adapter_state_dict_for_load(model, config, "default", state).values()
        return logits.softmax(-1)

    return restore, (torch.randn(3, 4), torch.tensor([[0.25]])), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/tuners/vblora/model.py",
    line=264,
    code="AMP105",
    scenario="bf16",
    error="scatter",
    breaks="A VB-LoRA adapter that was saved in half precision with `save_only_topk_weights=True` cannot be loaded.",
    build=build,
    mode="eval-no-grad",
    imports=("peft",),
)
