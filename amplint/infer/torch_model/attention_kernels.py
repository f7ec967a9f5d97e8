"""Attention kernels of other libraries: which arguments need one dtype, and which dtypes they take.

They are compiled extensions, which autocast does not act on and which cannot be run everywhere: what is said of them is
cited from the libraries' own checks, so it is likely at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import FLOAT32, Lane
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, Tensor, Value
from amplint.infer.state.facts import Kind, Mismatch
from amplint.infer.state.operand import Operand
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.mismatches import check, record
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    import ast

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame


@dataclass(frozen=True, slots=True)
class Kernel:
    """``inputs``: the leading parameters and what each is; ``low``: float16 and bfloat16 alone are taken;
    ``like``: the input whose dtype the result has."""

    inputs: tuple[tuple[str, str], ...]
    low: bool = False
    like: str = "query"


_Q_K_V = (("q", "query"), ("k", "key"), ("v", "value"))
_QUERY_KEY_VALUE = (("query", "query"), ("key", "key"), ("value", "value"))
_SCORES = Kernel((("query", "query"), ("key", "key")))
_WEIGHTED = Kernel((("attn", "attention"), ("value", "value")), like="value")

_FLASH = {
    "flash_attn_func": Kernel(_Q_K_V, low=True),
    "flash_attn_varlen_func": Kernel(_Q_K_V, low=True),
    "flash_attn_unpadded_func": Kernel(_Q_K_V, low=True),
    "flash_attn_kvpacked_func": Kernel((("q", "query"), ("kv", "key and value")), low=True),
    "flash_attn_varlen_kvpacked_func": Kernel((("q", "query"), ("kv", "key and value")), low=True),
    "flash_attn_qkvpacked_func": Kernel((("qkv", "query"),), low=True),
    "flash_attn_varlen_qkvpacked_func": Kernel((("qkv", "query"),), low=True),
    "flash_attn_with_kvcache": Kernel((("q", "query"), ("k_cache", "key"), ("v_cache", "value")), low=True),
}
"""``flash_attn``, csrc/flash_attn/flash_api.cpp: "FlashAttention only support fp16 and bf16 data type", "query and key
must have the same dtype"."""
_SAGE = {name: Kernel(_Q_K_V, low=True) for name in ("sageattn", "sageattn_varlen")}
"""``sageattention``, core.py: "Input tensors must be in dtype of torch.float16 or torch.bfloat16", "All tensors must
have the same dtype."."""
_XFORMERS = {"memory_efficient_attention": Kernel(_QUERY_KEY_VALUE)}
"""``xformers``, ops/fmha/common.py: "Query/Key/Value should either all have the same dtype"."""
_NATTEN = (
    {f"natten{n}dqk": _SCORES for n in (1, 2, 3)}
    | {f"na{n}d_qk": _SCORES for n in (1, 2, 3)}
    | {f"natten{n}dav": _WEIGHTED for n in (1, 2, 3)}
    | {f"na{n}d_av": _WEIGHTED for n in (1, 2, 3)}
    | {f"na{n}d": Kernel(_QUERY_KEY_VALUE) for n in (1, 2, 3)}
)
"""``natten``, csrc/include/natten/helpers.h: "Input tensors must match in dtype!" (0.15 to 0.17) and "Q, K, and V must
match in data type" (0.21); its Functions have ``custom_fwd`` without ``cast_inputs``."""

OF_CUDA = frozenset((*_FLASH, "_flash_attention_forward", "flash_attention_forward"))
"""What computes attention on CUDA alone: the kernels of ``flash_attn``, and the functions of ``transformers`` that call
them."""

_KERNELS = {"flash_attn": _FLASH, "sageattention": _SAGE, "xformers": _XFORMERS, "natten": _NATTEN}
KERNEL_NAMES = frozenset(name for kernels in _KERNELS.values() for name in kernels)


def find_kernel(name: str) -> Kernel | None:
    """The kernel of a qualified name, from wherever in its package it was imported."""
    package, _, rest = name.partition(".")
    return _KERNELS.get(package, {}).get(rest.rpartition(".")[2])


def call_kernel(frame: Frame, name: str, kernel: Kernel, arguments: Arguments, node: ast.expr) -> Value:
    """Hold the inputs against each other and against what the kernel takes; what comes out."""
    operands: list[Operand] = []
    result: Value = UNKNOWN
    for position, (parameter, role) in enumerate(kernel.inputs):
        given = arguments.get(position, parameter)
        tensor = next((o for o in options_of(given) if isinstance(o, Tensor)), None) if given is not None else None
        if tensor is None or tensor.maybe:
            continue
        operands.append(Operand(role, arguments.node(position, parameter), tensor))
        if role == kernel.like:
            result = Tensor(tensor.dtypes, None, tensor.origin)
    attention = find_op("torch.nn.functional.scaled_dot_product_attention")
    if attention is not None:
        op = replace(attention, name=name, strict=(tuple(role for _, role in kernel.inputs),), policy={})
        failing = check(frame, node, op, operands, out=False, cited=True)
        if kernel.low and not failing:
            _too_wide(frame, node, name, operands)
    return result


def _too_wide(frame: Frame, node: ast.expr, name: str, operands: list[Operand]) -> None:
    """Record a kernel that takes float16 and bfloat16 alone and gets float32, though the program runs in low
    precision: by what the code does itself, whatever its callers pass."""
    for operand in operands:
        lanes = []
        for number, lane in enumerate(operand.value.dtypes):
            scenario = frame.session.scenarios[number]
            low = frame.autocast[number].low or scenario.inputs != "float32"
            if low and frame.live >> number & 1 and lane == Lane(FLOAT32):
                lanes.append(number)
        if lanes:
            pair = (operand, operand)
            record(frame, Mismatch(node, name, Kind.ATTENTION, pair, tuple(operands), tuple(lanes), cited=True))
            return
