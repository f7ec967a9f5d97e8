"""Precision settings that contradict themselves, or that the hardware cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.preflight.document import UNKNOWN
from amplint.preflight.frameworks import (
    ACCELERATE_PRECISIONS,
    ACCELERATOR,
    AUTOCAST,
    DEEPSPEED,
    DTYPES,
    LIGHTNING,
    LIGHTNING_PRECISIONS,
    TRAINING_ARGUMENTS,
    Use,
    device_of,
    dtype_key,
    is_from_pretrained,
    on_a_gpu,
    uses,
)
from amplint.preflight.gpus import BF16_AND_TF32, FP8, Gpu
from amplint.preflight.problem import Problem, cited

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.preflight.call import Call

_TRAINING_ARGUMENTS = "https://github.com/huggingface/transformers/blob/main/src/transformers/training_args.py"
_ACCELERATOR = "https://github.com/huggingface/accelerate/blob/main/src/accelerate/accelerator.py"
_ACCELERATE_TYPES = "https://github.com/huggingface/accelerate/blob/main/src/accelerate/utils/dataclasses.py"
_DEEPSPEED = "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/config.py"
_LIGHTNING = "https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/fabric/connector.py"
_BF16 = "https://github.com/pytorch/pytorch/pull/129288"
_FP8 = "https://github.com/NVIDIA/TransformerEngine/issues/1159"
_FLASH = "https://github.com/Dao-AILab/flash-attention/blob/main/README.md"
_MODELING = "https://github.com/huggingface/transformers/blob/main/src/transformers/modeling_utils.py"


def judge_call(call: Call) -> Iterator[Problem]:
    """What is wrong with a call whatever it runs on."""
    yield from _contradiction(call)
    yield from _spelling(call)
    if not call.conditional:
        yield from _on_cpu(call)


def judge_on(call: Call, gpus: Sequence[Gpu]) -> Iterator[Problem]:
    """What some of the GPUs cannot do of what a call asks for."""
    if call.conditional or not on_a_gpu(call):
        return
    for use in uses(call):
        yield from _unsupported(use, gpus)
    yield from _flash_attention(call, gpus)


def below(gpus: Sequence[Gpu], capability: tuple[int, int]) -> str:
    """The GPUs known to be of a lower compute capability, as a message names them; empty where there is none."""
    old = dict.fromkeys(str(gpu) for gpu in gpus if gpu.capability is not None and gpu.capability < capability)
    return ", ".join(old)


def _contradiction(call: Call) -> Iterator[Problem]:
    pairs = {
        TRAINING_ARGUMENTS: (
            ("fp16", "bf16", _TRAINING_ARGUMENTS),
            ("fp16_full_eval", "bf16_full_eval", _TRAINING_ARGUMENTS),
        ),
        DEEPSPEED: (("fp16.enabled", "bf16.enabled", _DEEPSPEED),),
    }
    for half, brain, source in pairs.get(call.name, ()):
        if call.is_true(half) and call.is_true(brain):
            later = max(call.at(half), call.at(brain))
            yield cited(
                "fp16-and-bf16",
                f"{call.spelled(half, brain)}: both are on, which raises",
                later,
                "leave one on: bf16 on GPUs of compute capability 8.0 or later, else fp16",
                source,
            )


def _spelling(call: Call) -> Iterator[Problem]:
    """A precision that the framework does not know."""
    if call.name == ACCELERATOR:
        value = call.get("mixed_precision")
        if isinstance(value, str) and value not in ACCELERATE_PRECISIONS:
            yield _unknown(call, "mixed_precision", value, list(ACCELERATE_PRECISIONS), _ACCELERATE_TYPES)
    elif call.name in LIGHTNING:
        value = call.get("precision")
        if isinstance(value, str | int) and not isinstance(value, bool) and value not in LIGHTNING_PRECISIONS:
            known = [name for name in LIGHTNING_PRECISIONS if isinstance(name, str) and "-" in name]
            yield _unknown(call, "precision", value, known, _LIGHTNING)
    elif is_from_pretrained(call) and call.name.startswith("transformers."):
        value = call.get(dtype_key(call))
        if isinstance(value, str) and value in ("fp16", "fp32", "bf16", "fp8", "int8", "16", "32"):
            known = ["auto", *(name for name in DTYPES if name[-1].isdigit() and "8" not in name)]
            yield _unknown(call, dtype_key(call), value, known, _MODELING)


def _unknown(call: Call, key: str, value: object, known: Sequence[str], source: str) -> Problem:
    return cited(
        "invalid-precision",
        f"{call.spelled(key)}: there is no precision {value!r}, and it raises",
        call.at(key),
        f"write one of {', '.join(known)}",
        source,
    )


def _on_cpu(call: Call) -> Iterator[Problem]:
    if device_of(call) != "cpu" or call.name not in (TRAINING_ARGUMENTS, ACCELERATOR, *LIGHTNING):
        return
    for use in uses(call):
        if use.precision != "fp16-mixed":
            continue
        if call.name in LIGHTNING:
            outcome, source = "Lightning trains in bfloat16 instead", _LIGHTNING
            remedy = 'write precision="bf16-mixed"'
        else:
            outcome, source = "accelerate has no float16 autocast there: it raises, or trains in float32", _ACCELERATOR
            remedy = "use bf16 on the CPU"
        yield cited("fp16-on-cpu", f"{call.spelled(use.key)} on the CPU: {outcome}", call.at(use.key), remedy, source)


def _unsupported(use: Use, gpus: Sequence[Gpu]) -> Iterator[Problem]:
    call = use.call
    shown, place = call.spelled(use.key), call.at(use.key)
    if use.family == "bf16" and (old := below(gpus, BF16_AND_TF32)):
        yield cited(
            "bf16-emulated",
            f"{shown}: {old} has no bfloat16 arithmetic (compute capability 8.0); torch emulates it or refuses, and "
            "Triton and FlashAttention have no kernels for it",
            place,
            _instead_of_bf16(use),
            _BF16,
        )
    elif use.precision == "tf32" and (old := below(gpus, BF16_AND_TF32)):
        yield cited(
            "tf32-unsupported",
            f"{shown}: {old} has no TF32 (compute capability 8.0), and transformers raises",
            place,
            "leave tf32 out: it is for compute capability 8.0 or later",
            _TRAINING_ARGUMENTS,
        )
    elif use.family == "fp8" and (old := below(gpus, FP8)):
        yield cited(
            "fp8-unsupported",
            f"{shown}: {old} has no float8 matrix products (compute capability 8.9)",
            place,
            "use bf16 or fp16 mixed precision",
            _FP8,
        )


def _instead_of_bf16(use: Use) -> str:
    name = use.call.name
    if name == TRAINING_ARGUMENTS:
        return f"set {use.key.replace('bf16', 'fp16')} instead"
    if name == ACCELERATOR:
        return "set mixed_precision to fp16"
    if name in LIGHTNING:
        return f"set precision to {use.precision.replace('bf16', '16') if '-' in use.precision else '16-mixed'}"
    if name == DEEPSPEED:
        return "enable fp16 instead"
    if name.endswith("autocast"):
        return "use dtype=torch.float16 with a GradScaler"
    return "use torch.float16, or torch.float32 for weights that fp16 mixed precision trains"


def _flash_attention(call: Call, gpus: Sequence[Gpu]) -> Iterator[Problem]:
    if not is_from_pretrained(call) or call.get("attn_implementation") != "flash_attention_2":
        return
    old = below(gpus, BF16_AND_TF32)
    if old:
        yield cited(
            "flash-attention-unsupported",
            f"{call.spelled('attn_implementation')}: {old} is older than what FlashAttention 2 has kernels for "
            "(compute capability 8.0)",
            call.at("attn_implementation"),
            'use attn_implementation="sdpa"',
            _FLASH,
        )


def flash_attention_dtype(calls: Sequence[Call]) -> Iterator[Problem]:
    """FlashAttention with float32 weights, in a run that certainly has no autocast."""
    mixed = any(call.name == AUTOCAST or use.precision.endswith("-mixed") for call in calls for use in uses(call))
    open_ended = any(
        call.name in (TRAINING_ARGUMENTS, ACCELERATOR, DEEPSPEED, *LIGHTNING) or call.name.endswith("autocast")
        for call in calls
    )
    for call in calls:
        if not is_from_pretrained(call) or call.get("attn_implementation") != "flash_attention_2" or call.conditional:
            continue
        for use in uses(call):
            if use.precision in ("fp32", "fp64") and not mixed and not open_ended:
                yield cited(
                    "flash-attention-dtype",
                    f"{call.spelled('attn_implementation', use.key)}: FlashAttention takes float16 and bfloat16 only, "
                    "and no autocast casts for it",
                    call.at(use.key),
                    "load the weights in torch.bfloat16 or torch.float16, or run under autocast",
                    _MODELING,
                )


def asks_hardware(call: Call) -> bool:
    """Whether a call has anything that a GPU might not do."""
    return any(use.family in ("bf16", "tf32", "fp8") for use in uses(call)) or call.get("attn_implementation") not in (
        None,
        UNKNOWN,
        "eager",
        "sdpa",
    )
