"""The names of torch, one spelling for each thing that it exports from several places."""

from __future__ import annotations

_MOVED = {
    "torch.autocast": "torch.amp.autocast",
    "torch.amp.autocast_mode.autocast": "torch.amp.autocast",
    "torch.amp.autocast_mode.custom_fwd": "torch.amp.custom_fwd",
    "torch.amp.autocast_mode.custom_bwd": "torch.amp.custom_bwd",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.custom_fwd": "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.autocast_mode.custom_bwd": "torch.cuda.amp.custom_bwd",
    "torch.autograd.function.Function": "torch.autograd.Function",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.functional.einsum": "torch.einsum",
    "torch.nn.attention.scaled_dot_product_attention": "torch.nn.functional.scaled_dot_product_attention",
}


def canonical(name: str) -> str:
    """One spelling for names that torch exports from several places."""
    if name in _MOVED:
        return _MOVED[name]
    if name.startswith("torch.nn.modules."):
        rest = name.removeprefix("torch.nn.modules.").split(".")
        if rest[-1][:1].isupper():
            return "torch.nn." + rest[-1]
    return name
