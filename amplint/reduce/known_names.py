"""Names that torch gives a meaning as attributes and methods: who renames them says something else."""

from __future__ import annotations

from functools import cache

from amplint.data import read_table

_OF_MODULES = (
    *("forward", "weight", "bias", "training", "parameters", "buffers", "modules", "children", "state_dict"),
    *("train", "eval", "to", "register_buffer", "register_parameter", "reset_parameters", "extra_repr", "in_features"),
    *("out_features", "embedding_dim", "num_embeddings", "in_channels", "out_channels", "running_mean", "running_var"),
)
_OF_FUNCTIONS = ("backward", "setup_context", "jvp", "vjp", "vmap", "apply", "save_for_backward", "saved_tensors")
_OF_TENSORS = ("shape", "dtype", "device", "data", "grad", "requires_grad", "is_cuda", "ndim")


def is_known(name: str) -> bool:
    """Whether a tensor, a module or an autograd Function may have an attribute of that name from torch."""
    return name in _OF_MODULES or name in _OF_FUNCTIONS or name in _OF_TENSORS or name in _tensor_methods()


@cache
def _tensor_methods() -> frozenset[str]:
    return frozenset(
        name.rpartition(".")[2] for name in read_table("ops.json")["ops"] if name.startswith("torch.Tensor.")
    )
